"""Where a prompt comes from."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from orchestrator.cli.prompts import as_prompt, read_prompt
from orchestrator.client import Prompt, TokenIds, chat
from uag_common.errors import InvalidRequestError

NOTHING = BytesIO(b"not to be read")


def test_an_argument_is_the_prompt() -> None:
    assert read_prompt("wörter", None, NOTHING) == "wörter"


@pytest.mark.parametrize(("argument", "file"), [("-", None), (None, "-")])
def test_a_dash_is_standard_input(argument: str | None, file: str | None) -> None:
    assert read_prompt(argument, file, BytesIO("zwei\nZeilen 👍\n".encode())) == "zwei\nZeilen 👍\n"


def test_a_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"\r\n text \n")
    assert read_prompt(None, str(path), NOTHING) == "\r\n text \n"


@pytest.mark.parametrize(
    ("argument", "data", "message"),
    [
        ("", b"", "the prompt: is empty"),
        ("-", b"", "standard input: is empty"),
        ("-", b"abc\xff", "standard input: byte 4 is no valid UTF-8"),
        ("\udcff", b"", "the prompt: byte 1 is no valid UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(argument: str, data: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        read_prompt(argument, None, BytesIO(data))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"nothing\.txt: cannot be read: No such"):
        read_prompt(None, str(tmp_path / "nothing.txt"), NOTHING)


def prompt(
    text: str, *, question: bool = False, system: str | None = None, token_ids: bool = False
) -> Prompt:
    return as_prompt(text, question=question, system=system, token_ids=token_ids)


def test_raw_unless_a_chat_is_asked_for() -> None:
    assert prompt("hi") == "hi"
    assert prompt("hi", question=True) == chat("hi")
    assert prompt("hi", system="be brief") == chat("hi", "be brief")


@pytest.mark.parametrize("text", ["3 0 12", "3,0,12", " 3,\n0 12\n"])
def test_a_list_of_ids(text: str) -> None:
    assert prompt(text, token_ids=True) == TokenIds((3, 0, 12))


@pytest.mark.parametrize("text", ["3 x", "-1", "1.5", "٣"])
def test_what_is_no_id_is_named(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"the prompt: .* is no token id"):
        prompt(text, token_ids=True)
