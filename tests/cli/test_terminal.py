"""What a stream is shown, by the kind of stream and by NO_COLOR."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from io import StringIO
from typing import TextIO

import pytest

from orchestrator.cli.terminal import GREEN, RESET, Screen


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield stream
    os.close(ours)


def test_a_terminal_is_coloured(terminal: TextIO) -> None:
    assert Screen.of(terminal, {"TERM": "xterm"}).coloured


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_unless_it_is_told_not_to(terminal: TextIO, environ: dict[str, str]) -> None:
    screen = Screen.of(terminal, environ)
    assert screen.is_terminal
    assert not screen.coloured


def test_an_empty_no_color_counts_as_unset(terminal: TextIO) -> None:
    assert Screen.of(terminal, {"NO_COLOR": ""}).coloured


def test_other_streams_get_every_character_as_it_is() -> None:
    stream = StringIO()
    screen = Screen.of(stream, {})
    screen.write("a\x1b[2Jb\n", GREEN)
    assert stream.getvalue() == "a\x1b[2Jb\n"


def test_a_terminal_gets_no_orders_from_a_text() -> None:
    stream = StringIO()
    Screen(stream, is_terminal=True, coloured=True).write("a\x1b[2Jb\r\n\tc\x9b", GREEN)
    assert stream.getvalue() == f"{GREEN}a\ufffd[2Jb\ufffd\n\tc\ufffd{RESET}"
