"""Where a prompt comes from."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from orchestrator.cli.prompts import PromptForm, as_prompt, read_prompt
from orchestrator.client import Message, TokenIds, chat
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


def test_raw_unless_a_chat_is_asked_for() -> None:
    assert as_prompt("hi", PromptForm.TEXT) == "hi"
    assert as_prompt("hi", PromptForm.QUESTION) == chat("hi")
    assert as_prompt("hi", PromptForm.QUESTION, "be brief") == chat("hi", "be brief")


@pytest.mark.parametrize("text", ["3 0 12", "3,0,12", " 3,\n0 12\n"])
def test_a_list_of_ids(text: str) -> None:
    assert as_prompt(text, PromptForm.TOKEN_IDS) == TokenIds((3, 0, 12))


@pytest.mark.parametrize("text", ["3 x", "-1", "1.5", "٣"])
def test_what_is_no_id_is_named(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"the prompt: .* is no token id"):
        as_prompt(text, PromptForm.TOKEN_IDS)


def test_a_conversation() -> None:
    text = '[{"role": "user", "content": "hi"}, {"content": "ü", "role": "assistant"}]'
    turns = (Message("user", "hi"), Message("assistant", "ü"))
    assert as_prompt(text, PromptForm.MESSAGES) == turns


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hi", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ('{"role": "user", "content": "hi"}', "is no conversation"),
        ('["hi"]', "is no conversation"),
        ('[{"role": "user"}]', "is no conversation"),
        ('[{"role": "user", "content": 5}]', "is no conversation"),
        ('[{"role": "user", "content": "hi", "name": "x"}]', "is no conversation"),
    ],
)
def test_what_is_no_conversation_is_told(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        as_prompt(text, PromptForm.MESSAGES)
