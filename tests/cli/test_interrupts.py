"""Signals become exceptions until somebody has seen one, and wait where a step must not be half
done."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from orchestrator.cli import interrupts
from orchestrator.cli.interrupts import (
    STOP_SIGNALS,
    Terminated,
    raise_on_signals,
    seen,
    uninterrupted,
)
from orchestrator.cli.supervisor import Supervisor
from tests.cli.processes import ROOT, environment
from tests.scripted_orchestrator import FINISHED, STARTED, ScriptedOrchestrator, delta

each_kind = pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)


@pytest.fixture(autouse=True)
def _handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The tests themselves say when the time is over: an interrupt of its own would end them all.
    monkeypatch.setattr(interrupts, "AGAIN_SECONDS", 600.0)
    before = {number: signal.getsignal(number) for number in (*STOP_SIGNALS, signal.SIGALRM)}
    raise_on_signals()
    yield
    seen()
    for number, handler in before.items():
        signal.signal(number, handler)


def raised_by(number: signal.Signals) -> type[BaseException] | None:
    """What comes of a signal, which is then lost."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt as interrupt:
        return type(interrupt)
    return None


def timer() -> tuple[float, float]:
    """Seconds until it is over, and from then on between two ends."""
    return signal.getitimer(signal.ITIMER_REAL)


@each_kind
def test_it_raises_again_until_it_is_seen(
    number: signal.Signals, kind: type[BaseException]
) -> None:
    assert raised_by(number) is kind
    first, later = timer()
    assert (0 < first <= 600, later) == (True, 600)
    assert raised_by(signal.SIGALRM) is kind
    assert raised_by(signal.SIGALRM) is kind
    seen()
    assert timer() == (0, 0)
    assert raised_by(signal.SIGALRM) is None


def test_a_second_one_raises_at_once_and_again() -> None:
    raised_by(signal.SIGINT)
    assert raised_by(signal.SIGTERM) is Terminated
    assert raised_by(signal.SIGALRM) is Terminated


@each_kind
def test_a_step_is_finished_first(number: signal.Signals, kind: type[BaseException]) -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt) as raised:
        _work(number, steps)
    assert raised.type is kind
    assert steps == ["begun", "finished"]


def _work(number: signal.Signals, steps: list[str]) -> None:
    with uninterrupted():
        steps.append("begun")
        with uninterrupted():
            signal.raise_signal(number)
        signal.raise_signal(signal.SIGALRM)
        steps.append("finished")
    steps.append("gone on")


def test_a_step_does_not_raise_anew_what_came_before_it() -> None:
    raised_by(signal.SIGINT)
    try:
        with uninterrupted():
            pass
    except KeyboardInterrupt:
        pytest.fail("raised anew")


def test_what_was_held_back_and_lost_raises_again() -> None:
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert raised_by(signal.SIGALRM) is KeyboardInterrupt


def test_a_supervisor_that_stops_has_seen_it() -> None:
    with pytest.raises(KeyboardInterrupt), Supervisor():
        signal.raise_signal(signal.SIGINT)
    assert raised_by(signal.SIGALRM) is None


def test_a_timer_of_somebody_else_goes_on() -> None:
    signal.setitimer(signal.ITIMER_REAL, 600)
    try:
        seen()
        assert timer()[0] > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


# What a Ctrl-C can come into the midst of while a command streams an answer.
IN_A_DEL = """
class Swallows:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def show(printer, delta):
    AnswerPrinter.show = shown
    Swallows()

shown, AnswerPrinter.show = AnswerPrinter.show, show
"""
IN_A_LOCK = """
def show(printer, delta):
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        threading.Condition().notify()

AnswerPrinter.show = show
"""
IN_THE_CHANNEL_S_LOCK = """
def next_response(stream):
    ResponseStream.__next__ = following
    # As when it comes between the taking of the lock and the block that gives it back.
    stream._call._state.condition.acquire()
    signal.raise_signal(signal.SIGINT)

following, ResponseStream.__next__ = ResponseStream.__next__, next_response
"""
IN_THE_START_OF_THE_CALL = """
def start(thread):
    threading.Thread.start = started
    signal.raise_signal(signal.SIGINT)
    started(thread)

started, threading.Thread.start = threading.Thread.start, start
"""
PROGRAM = """
import signal, sys, threading
from orchestrator.cli import interrupts
from orchestrator.cli.answer_printer import AnswerPrinter
from orchestrator.cli.main import main
from orchestrator.client.client import ResponseStream
interrupts.AGAIN_SECONDS = {again}
{moment}
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("moment", "again"),
    [
        pytest.param(IN_A_DEL, 0.3, id="a __del__"),
        pytest.param(IN_A_LOCK, 600, id="a lock"),
        pytest.param(IN_THE_CHANNEL_S_LOCK, 0.3, id="the channel's lock"),
        pytest.param(IN_THE_START_OF_THE_CALL, 600, id="the start of the call"),
    ],
)
def test_a_command_ends_whatever_the_interrupt_came_into(moment: str, again: float) -> None:
    script = (STARTED, *(delta("word ") for _ in range(100)), FINISHED)
    with ScriptedOrchestrator(script=script, pause_seconds=0.1) as orchestrator:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(moment=moment, again=again),
             "generate", "--target", orchestrator.address, "hi"],
            capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("uag generate: interrupted\n")
