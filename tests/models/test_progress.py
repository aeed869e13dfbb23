"""Bars for a terminal, plain lines for a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from uag_common.models import progress
from uag_common.models.progress import TerminalProgress


def shown(terminal: bool, steps: list[int]) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=200)
    with TerminalProgress(console).transfer("a.whl", 2_000_000) as transfer:
        for done in steps:
            transfer.reached(done)
    return output.getvalue()


def test_a_pipe_gets_two_plain_lines() -> None:
    text = shown(False, [0, 1_000_000, 2_000_000])
    lines = text.splitlines()
    assert lines[0] == "a.whl: 2.0 MB"
    assert lines[1].startswith("a.whl: done, 2.0 MB, ")
    assert len(lines) == 2
    assert "\r" not in text
    assert "\x1b" not in text


def test_a_resumed_transfer_says_so() -> None:
    assert "a.whl: 2.0 MB, 500.0 kB already here" in shown(False, [500_000, 2_000_000])


def test_a_slow_transfer_gives_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    assert "a.whl: 1.0 MB of 2.0 MB" in shown(False, [0, 1_000_000, 2_000_000])


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = shown(True, [0, 2_000_000])
    assert "2.0/2.0 MB" in text
    assert "\x1b" in text


def test_a_failed_transfer_is_not_called_done() -> None:
    output = io.StringIO()
    transfer = TerminalProgress(Console(file=output)).transfer("a.whl", 10)
    transfer.__enter__().reached(3)
    transfer.__exit__(OSError, OSError("cut"), None)
    assert "done" not in output.getvalue()


def test_brackets_are_text() -> None:
    output = io.StringIO()
    TerminalProgress(Console(file=output, width=20)).note("[red] stays, and a long line too")
    assert output.getvalue() == "[red] stays, and a long line too\n"
