"""The figures of an answer as text."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.cli import figures
from orchestrator.cli.messages import decode_event
from orchestrator.events import Degraded, Finished, SpeculationFigures
from tests.cli.scripted_orchestrator import FINISHED


def finished() -> Finished:
    event = decode_event(FINISHED)
    assert isinstance(event, Finished)
    return event


def test_summary() -> None:
    assert figures.summary(finished()) == (
        "5 tokens, 2 rounds, proposed 9 / accepted 2, 2.5 tokens/s, first token after 0.25 s, "
        "ended by the limit of tokens"
    )


def test_one_is_no_plural() -> None:
    one = SpeculationFigures(1, 1, 0, 0, 0, 0, 0, 0, ())
    answer = replace(finished(), completion_tokens=1, speculation=one)
    assert figures.summary(answer).startswith("1 token, 1 round, proposed 0 / accepted 0")


def test_acceptance() -> None:
    assert figures.acceptance(finished()) == (
        "accepted 2 of 4 examined (50%), 2.00 tokens per round"
    )


def test_acceptance_without_candidates() -> None:
    none = SpeculationFigures(4, 4, 0, 0, 0, 0, 0, 0, ())
    text = figures.acceptance(replace(finished(), speculation=none))
    assert text == "nothing was proposed: every round was a plain step of the target"


def test_time_split_tells_all_of_the_time() -> None:
    assert figures.time_split(finished().time) == (
        "time 2.00 s: prefill 0.20 s (10%), draft 1.00 s (50%), convert 0.10 s (5%), "
        "verify 0.50 s (25%), gRPC 0.10 s (5%), queue 0.00 s (0%), other 0.10 s (5%)"
    )


def test_degradation() -> None:
    assert figures.degradation(finished()) is None
    lost = replace(finished(), degraded=Degraded("the draft went away", since_round=3))
    assert figures.degradation(lost) == (
        "no drafts from round 3 on (the draft went away); the answer is whole all the same"
    )
