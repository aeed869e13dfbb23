"""The answer with drafts beside the target's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.cli import comparison
from orchestrator.cli.comparison import Answer
from orchestrator.client import Finished
from orchestrator.client.response import decode_event
from uag.orchestrator.v1 import orchestrator_pb2 as pb

IDS = tuple(range(21))


def answer(
    seconds: float, rounds: int, verify: float, *, drafted: int = 0, draft: float = 0.0
) -> Answer:
    """An answer of 21 tokens; every round drafts, or none does."""
    message = pb.Finished(
        finish_reason=pb.FINISH_REASON_MAX_TOKENS,
        usage=pb.Usage(prompt_tokens=4, completion_tokens=len(IDS)),
        speculation=pb.SpeculationFigures(
            rounds=rounds,
            plain_steps=0 if drafted else rounds,
            draft_tokens_proposed=drafted,
            candidates_proposed=drafted,
            candidates_examined=drafted,
        ),
        time=pb.TimeFigures(total_seconds=seconds, draft_seconds=draft, verify_seconds=verify),
    )
    event = decode_event(pb.GenerateResponse(finished=message))
    assert isinstance(event, Finished)
    return Answer(IDS, event)


ALONE = answer(2.1, rounds=20, verify=2.0)
SLOWER = answer(4.2, rounds=10, verify=2.0, drafted=50, draft=2.0)
FASTER = answer(1.05, rounds=5, verify=0.75, drafted=25, draft=0.25)


def test_slower_says_why_and_what_to_try() -> None:
    lines = comparison.lines(SLOWER, ALONE)
    assert lines[:5] == [
        "ids: identical, all 21",
        "speed: 5.0 tokens/s with the draft, 10.0 tokens/s without: ratio 0.50, slower",
        "why: a drafted token costs 40 ms, 0.40 of a plain step of the target (100 ms)",
        "     a round drafts 5.0 tokens and verifies them (200 ms): 400 ms for 2.0 tokens,",
        "     which the target alone says in 200 ms",
    ]
    assert lines[5].startswith("try: ")


def test_faster_needs_no_excuse() -> None:
    assert comparison.lines(FASTER, ALONE) == [
        "ids: identical, all 21",
        "speed: 20.0 tokens/s with the draft, 10.0 tokens/s without: ratio 2.00, faster",
    ]


@pytest.mark.parametrize(
    ("ids", "line"),
    [
        ((0, 1, 9), "ids: different from token 3 on"),
        ((0, 1), "ids: different from token 3 on"),
        ((9,), "ids: different from token 1 on"),
    ],
)
def test_different_ids_are_told_by_their_place(ids: tuple[int, ...], line: str) -> None:
    assert comparison.ids_line(replace(SLOWER, ids=ids), ALONE).startswith(line)


def test_costs_are_unknown_where_nothing_was_drafted() -> None:
    assert comparison.costs(ALONE.finished, ALONE.finished) is None
    assert comparison.reasons(ALONE, ALONE) == ()


def test_plain_steps_are_no_verifications() -> None:
    counts = replace(SLOWER.finished.speculation, rounds=15, plain_steps=5)
    times = replace(SLOWER.finished.time, verify_seconds=2.5)
    cost = comparison.costs(
        replace(SLOWER.finished, speculation=counts, time=times), ALONE.finished
    )
    assert cost is not None
    assert cost.verification == pytest.approx(0.2)
