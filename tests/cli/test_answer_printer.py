"""Several answers on one screen."""

from __future__ import annotations

from io import StringIO

from orchestrator.cli.answer_printer import AnswerPrinter
from orchestrator.cli.terminal import Screen
from orchestrator.client import Delta
from orchestrator.client.response import decode_event
from tests.scripted_orchestrator import delta


def shown(*parts: tuple[int, str], answers: int) -> str:
    """What stands there after these deltas, each a choice and its text."""
    stream = StringIO()
    printer = AnswerPrinter(Screen(stream, is_terminal=False, coloured=False), answers)
    for choice, text in parts:
        event = decode_event(delta(text, choice=choice))
        assert isinstance(event, Delta)
        printer.show(event)
    printer.end()
    return stream.getvalue()


def test_one_answer_has_no_number() -> None:
    assert shown((0, "a"), (0, "b"), answers=1) == "ab\n"
    assert shown((0, "ab\n"), answers=1) == "ab\n"


def test_answers_that_grow_together_are_shown_one_after_another() -> None:
    parts = ((2, "c"), (0, "a"), (1, "b\n"), (2, "cc"), (0, "aa"))
    assert shown(*parts, answers=3) == (
        "--- answer 1 of 3\naaa\n\n--- answer 2 of 3\nb\n\n--- answer 3 of 3\nccc\n"
    )


def test_an_answer_without_text_has_its_number() -> None:
    assert shown((1, "b"), answers=2) == "--- answer 1 of 2\n\n--- answer 2 of 2\nb\n"


def test_nothing_that_came_is_nothing_shown() -> None:
    assert shown(answers=2) == ""
