"""Signals become exceptions, and wait where a step must not be half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from orchestrator.cli.interrupts import (
    STOP_SIGNALS,
    Terminated,
    raise_on_signals,
    uninterrupted,
)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    raise_on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_both_signals_raise() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_step_is_finished_first(number: signal.Signals, kind: type[BaseException]) -> None:
    steps: list[str] = []
    with pytest.raises(kind):
        _work(number, steps)
    assert steps == ["begun", "finished"]


def _work(number: signal.Signals, steps: list[str]) -> None:
    with uninterrupted():
        steps.append("begun")
        signal.raise_signal(number)
        steps.append("finished")
    steps.append("gone on")
