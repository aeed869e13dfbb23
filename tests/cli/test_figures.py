"""The figures of an answer as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.cli import figures
from orchestrator.client import Answer, Choice, Degraded, Finished, FinishReason, Started
from orchestrator.client.response import decode_event
from tests.scripted_orchestrator import FINISHED, STARTED

SUMMARY = (
    "5 tokens, 2 rounds, proposed 9 / accepted 2, 2.5 tokens/s, first token after 0.25 s, "
    "ended by the limit of tokens"
)
LOST = Degraded("the draft went away", since_round=3, seconds=1.5)


def finished(**counts: Any) -> Finished:
    """The scripted end, with other counts."""
    event = decode_event(FINISHED)
    assert isinstance(event, Finished)
    return replace(event, speculation=replace(event.speculation, **counts))


def started() -> Started:
    event = decode_event(STARTED)
    assert isinstance(event, Started)
    return event


def test_summary() -> None:
    assert figures.summary(finished()) == SUMMARY


def test_what_was_looked_up_is_told_apart() -> None:
    copied = finished(lookup_proposed=4, lookup_accepted=1)
    assert "proposed 9 / accepted 2 (looked up: 4 / 1), " in figures.summary(copied)


def test_one_is_no_plural() -> None:
    one = finished(rounds=1, candidates_proposed=0, candidates_accepted=0)
    answer = replace(one, usage=replace(one.usage, completion_tokens=1))
    assert figures.summary(answer).startswith("1 token, 1 round, proposed 0 / accepted 0")


@pytest.mark.parametrize("reason", FinishReason)
def test_every_reason_has_its_words(reason: FinishReason) -> None:
    assert ", ended " in figures.summary(replace(finished(), reason=reason))


def test_what_stopped_it_is_told() -> None:
    by_text = replace(finished(), reason=FinishReason.STOP_SEQUENCE, stop_sequence="\n\n")
    assert figures.summary(by_text).endswith(r"ended by a stop sequence '\n\n'")
    by_id = replace(finished(), reason=FinishReason.STOP_TOKEN, stop_token_id=0)
    assert figures.summary(by_id).endswith("ended by a stop token (id 0)")


def test_acceptance() -> None:
    assert figures.acceptance(finished()) == (
        "accepted 2 of 4 examined (50%), 2.00 tokens per round"
    )


def test_acceptance_without_candidates() -> None:
    text = figures.acceptance(finished(candidates_examined=0))
    assert text == "nothing was proposed: every round was a plain step of the target"


def test_time_split_tells_all_of_the_time() -> None:
    assert figures.time_split(finished().time) == (
        "time 2.00 s: prefill 0.20 s (10%), draft 1.00 s (50%), convert 0.10 s (5%), "
        "verify 0.50 s (25%), gRPC 0.10 s (5%), queue 0.00 s (0%), other 0.10 s (5%)"
    )


def test_a_server_without_times_is_no_error() -> None:
    timeless = replace(finished(), time=replace(finished().time, total_seconds=0.0))
    assert "0.0 tokens/s" in figures.summary(timeless)
    assert figures.time_split(timeless.time).startswith("time 0.00 s: ")


def test_degradation() -> None:
    assert figures.degradation(finished()) is None
    assert figures.degradation(replace(finished(), degraded=LOST)) == (
        "no drafts from round 3 on, for 1.50 s (the draft went away); the answer is whole all the "
        "same"
    )


def test_the_names_of_the_request_stand_with_its_figures() -> None:
    known = replace(started(), trace_id="ab", parameters={"request_id": "r-1", "seed": 0})
    answer = Answer(known, (Choice("", (), finished()),))
    assert figures.answer_lines(answer) == [f"{SUMMARY}, seed 0, request r-1, trace ab"]
    assert figures.answer_lines(replace(answer, started=started())) == [SUMMARY]


def test_several_answers_have_a_line_each() -> None:
    known = replace(started(), trace_id="ab")
    lost = replace(finished(), degraded=LOST)
    answer = Answer(known, (Choice("", (), lost), Choice("", (), lost)))
    assert figures.answer_lines(answer) == [
        f"answer 1: {SUMMARY}",
        f"answer 2: {SUMMARY}",
        "trace ab",
        str(figures.degradation(lost)),
    ]
