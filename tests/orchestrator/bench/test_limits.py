"""The limits against tables, a simulation and the cases at their ends."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from orchestrator.bench.bounds import bounds
from orchestrator.bench.limits import (
    Costs,
    best_sequential,
    costs,
    tokens_per_round,
    unlimited_verifier,
)
from orchestrator.bench.way import Way
from tests.orchestrator.bench.recorded import NO_TIME, PLAIN, measured, reply


@pytest.mark.parametrize(
    ("a", "c", "g", "speed_up"),
    [(0.3, 0.5, 0, 1.0), (0.5, 0.05, 3, 1.63), (0.8, 0.1, 6, 2.47), (0.9, 0.01, 24, 7.49)],
)
def test_best_length(a: float, c: float, g: int, speed_up: float) -> None:
    """As in the table of docs/choosing-a-pair.md."""
    found = best_sequential(a, c)
    assert found.candidates == g
    assert found.speed_up == pytest.approx(speed_up, abs=0.005)


@pytest.mark.parametrize("a", [0.0, 0.4, 0.9])
def test_the_sum_is_the_formula(a: float) -> None:
    assert tokens_per_round(a, 6) == pytest.approx((1 - a**7) / (1 - a))


def test_a_draft_that_is_always_right_and_free() -> None:
    assert tokens_per_round(1, 6) == 7
    assert unlimited_verifier(1, 0) == float("inf")


def test_an_unlimited_verifier_is_what_a_simulation_gives() -> None:
    """A right token takes the draft's time; behind a wrong one everything waits for the target."""
    dice, a, c, tokens = random.Random(0), 0.7, 0.2, 200_000
    spent = sum(c if dice.random() < a else 1.0 for _ in range(tokens))
    assert unlimited_verifier(a, c) == pytest.approx(tokens / spent, rel=0.01)


@pytest.mark.parametrize(("a", "c"), [(0.5, 0.05), (0.8, 0.1), (0.9, 0.5), (0.2, 1.0)])
def test_no_turns_beat_the_unlimited_verifier(a: float, c: float) -> None:
    assert best_sequential(a, c).speed_up <= unlimited_verifier(a, c)


def test_costs_are_told_apart_by_who_drafted() -> None:
    figures = replace(
        PLAIN,
        rounds=10,
        plain_steps=4,
        candidates_proposed=30,
        candidates_examined=20,
        candidates_accepted=12,
        lookup_proposed=10,
        lookup_examined=10,
        lookup_accepted=8,
    )
    time = replace(
        NO_TIME, draft_seconds=1.0, verify_seconds=1.6, network_seconds=0.3, convert_seconds=0.2
    )
    drafted = measured(Way.MODEL, "a", reply(0.1, speculation=figures, time=time))
    # Four rounds of 0.1 s.
    off = measured(Way.OFF, "a", reply(0.1))
    found = costs([drafted], [off])
    assert found is not None
    assert found.plain_step == pytest.approx(0.1)
    assert found.a == pytest.approx(4 / 10)
    assert found.c == pytest.approx(1.0 / 20 / 0.1)
    # 16 plain steps' time, 4 of them for plain steps, in 6 verifications.
    assert found.v == pytest.approx(2.0)
    assert found.r == pytest.approx(0.5)


def test_nothing_drafted_has_no_costs() -> None:
    off = measured(Way.OFF, "a", reply(0.1))
    assert costs([measured(Way.MODEL, "a", reply(0.1))], [off]) is None
    assert costs([], []) is None


def test_each_bound_is_held_against_its_way() -> None:
    cost = Costs(a=0.8, c=0.1, v=1.1, r=0.0, plain_step=0.05)
    ways = {Way.MODEL: (1.235, 3.0), Way.LOOKUP: (1.5, 2.0), Way.AUTO: (1.8, 3.2)}
    found = {each.name: each for each in bounds(cost, ways)}
    assert found["best_sequential"].efficiency == pytest.approx(0.5, abs=0.005)
    assert found["unlimited_verifier"].limit == pytest.approx(1 / (1 - 0.8 + 0.08))
    assert (found["lookup_rounds"].limit, found["lookup_rounds"].efficiency) == (2.0, 0.75)
    best = found["better_of_both"]
    assert best.limit == found["best_sequential"].limit
    assert (best.way, best.measured) == (Way.AUTO, 1.8)


def test_without_a_draft_model_looking_up_alone_is_bounded() -> None:
    names = [each.name for each in bounds(None, {Way.LOOKUP: (1.5, 2.0), Way.AUTO: (1.4, 2.0)})]
    assert names == ["lookup_rounds", "better_of_both"]
    assert bounds(None, {Way.AUTO: (1.4, 2.0)}) == ()
