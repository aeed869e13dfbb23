"""What is said of a pair, for each way that its medians can lie."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.bench.findings import Findings, find
from orchestrator.bench.verdict import ENOUGH, verdict
from orchestrator.bench.way import Way
from orchestrator.client import SpeculationFigures
from tests.orchestrator.bench.recorded import PLAIN, measured, reply

Speeds = dict[Way, dict[str, float]]
MEMORY = (
    "Memory of both: weights 0.27 GB (target) and 0.54 GB (draft), 0.81 GB together; caches and "
    "programs come on top."
)


DRAFTED = replace(PLAIN, candidates_examined=3, candidates_accepted=1)


def findings(
    speeds: Speeds, repeat: int = ENOUGH, figures: SpeculationFigures = DRAFTED
) -> Findings:
    """Of one prompt of each kind, answered so many times as fast as without drafts."""
    plain = dict.fromkeys(next(iter(speeds.values())), 1.0)
    return find(
        [
            measured(
                way,
                kind,
                reply(1 / speed, speculation=figures),
                kind=kind,
                repetition=repetition,
            )
            for way, by_kind in {Way.OFF: plain, **speeds}.items()
            for kind, speed in by_kind.items()
            for repetition in range(repeat)
        ],
        Way.OFF,
    )


def said(speeds: Speeds) -> list[str]:
    *told, memory = verdict(findings(speeds), 270_000_000, 540_000_000)
    assert memory == MEMORY
    return told


@pytest.mark.parametrize(
    ("code", "prose", "told"),
    [
        (1.8, 1.2, "Use it (auto), for every kind: code (1.80), prose (1.20)."),
        (
            1.8,
            0.99,
            "Use it (auto): faster for code (1.80); as fast as the target alone for the rest "
            "(lowest: prose (0.99)).",
        ),
        (1.8, 0.8, "Use it (auto) for code (1.80), not for prose (0.80)."),
        (
            0.7,
            0.8,
            "Do not use it with this pair: nothing is faster, and slower is prose (0.80), "
            "code (0.70).",
        ),
        (
            1.0,
            1.01,
            "Nothing is gained and nothing is lost (auto): as fast as the target alone for every "
            "kind (lowest: code (1.00)).",
        ),
    ],
)
def test_whether_to_use_it(code: float, prose: float, told: str) -> None:
    assert said({Way.AUTO: {"code": code, "prose": prose}}) == [told]


def test_what_the_draft_model_is_worth() -> None:
    assert said({Way.MODEL: {"code": 1.5, "prose": 0.6}}) == [
        "The draft model alone pays for code (1.50); it costs for prose (0.60)."
    ]
    assert said({Way.FORCED: {"code": 0.5, "prose": 0.6}}) == [
        "The draft model alone pays for no kind (best: prose (0.60))."
    ]


def test_a_draft_model_that_pays_nowhere_can_go() -> None:
    speeds = {
        Way.AUTO: {"copy": 1.9, "prose": 1.0},
        Way.MODEL: {"copy": 0.9, "prose": 1.0},
        Way.LOOKUP: {"copy": 1.9, "prose": 1.0},
    }
    assert said(speeds)[-1] == (
        "Without the draft model (draft_tokens=0) the same is had, and 0.54 GB of weights less."
    )
    helped = {**speeds, Way.MODEL: {"copy": 0.9, "prose": 1.3}}
    assert not [line for line in said(helped) if line.startswith("Without")]
    better = {**speeds, Way.AUTO: {"copy": 2.4, "prose": 1.2}}
    assert not [line for line in said(better) if line.startswith("Without")]


def test_a_draft_model_that_auto_never_used_is_not_praised() -> None:
    copied = replace(DRAFTED, lookup_examined=3, lookup_accepted=1)
    told = verdict(findings({Way.AUTO: {"copy": 1.7}}, figures=copied), 270_000_000, 540_000_000)
    assert told[:3] == [
        "Use it (auto), for every kind: copy (1.70).",
        "The draft model had no part in that: auto did not use it.",
        "Without the draft model (draft_tokens=0) the same is had, and 0.54 GB of weights less.",
    ]


def test_few_requests_of_a_kind_are_told() -> None:
    told = verdict(
        findings({Way.AUTO: {"code": 1.5, "list": 1.0}}, repeat=2), 270_000_000, 540_000_000
    )
    assert told[1] == (
        "Some kinds have few requests (code: 2, list: 2), so take their figures with care; more "
        "prompts of them tell more."
    )


def test_answers_that_are_too_short_say_nothing() -> None:
    short = [measured(way, "a", reply(1.0, ids=(1,))) for way in (Way.OFF, Way.AUTO)]
    told = verdict(find(short, Way.OFF), 270_000_000, 540_000_000)
    assert told == ["Nothing can be said of speed: the answers have too few tokens.", MEMORY]
