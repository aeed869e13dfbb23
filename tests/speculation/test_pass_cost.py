"""What tokens cost in a pass: learnt from passes of any size, and of any number of sessions."""

from __future__ import annotations

import math
import random

import pytest

from orchestrator.speculation.pass_cost import FIRST_JUMP, FIRST_SLOPE, PassCost

SIZES = (2, 3, 5, 9, 17, 33)


def truth(tokens: int, jump: float, slope: float) -> float:
    return 1 + jump * (tokens > 1) + slope * (tokens - 1)


def learnt(jump: float, slope: float, sessions: int = 1, passes: int = 600) -> PassCost:
    dice, cost = random.Random(1), PassCost()
    for _ in range(passes):
        tokens = sessions * dice.choice(SIZES)
        ratio = truth(tokens, jump, slope) / truth(sessions, jump, slope)
        cost.observe(tokens, ratio * math.exp(dice.gauss(0, 0.1)), sessions)
    return cost


def test_a_token_more_costs_little_before_anything_is_known() -> None:
    assert PassCost().of(1) == 1
    assert PassCost().of(11) == pytest.approx(1 + FIRST_JUMP + 10 * FIRST_SLOPE)


@pytest.mark.parametrize(("jump", "slope"), [(0.0, 0.0), (0.0, 0.05), (0.5, 0.01), (0.6, 0.3)])
def test_jump_and_slope_are_learnt(jump: float, slope: float) -> None:
    cost = learnt(jump, slope)
    for tokens in SIZES:
        assert cost.of(tokens) == pytest.approx(truth(tokens, jump, slope), rel=0.1)


@pytest.mark.parametrize("sessions", [2, 8, 32])
@pytest.mark.parametrize(("jump", "slope"), [(0.0, 0.005), (0.5, 0.01)])
def test_where_passes_are_shared_their_sizes_are_told_apart(
    sessions: int, jump: float, slope: float
) -> None:
    """However long: no pass of one token is there to say how long that takes."""
    cost = learnt(jump, slope, sessions, passes=6_000)
    for size in SIZES:
        tokens = sessions * size
        expected = truth(tokens, jump, slope) / truth(sessions, jump, slope)
        assert cost.of(tokens) / cost.of(sessions) == pytest.approx(expected, rel=0.1)
    assert 1 <= cost.of(sessions) < 1.5 * truth(sessions, jump, slope)


def test_neither_is_ever_below_0() -> None:
    dice, cost = random.Random(1), PassCost()
    for _ in range(500):
        cost.observe(dice.choice(SIZES), 1.5 - 0.01 * dice.choice(SIZES))
        sizes = [cost.of(tokens) for tokens in range(1, 40)]
        assert sizes == sorted(sizes)


def test_a_pass_that_was_held_up_is_not_believed() -> None:
    cost = PassCost()
    for _ in range(100):
        cost.observe(4, 50.0)
        cost.observe(4, 0.01)
        cost.observe(1, 3.0)
    assert cost.of(4) == PassCost().of(4)


def test_what_is_old_counts_less() -> None:
    cost, dice = learnt(0.5, 0.01), random.Random(2)
    for _ in range(2000):
        tokens = dice.choice(SIZES)
        cost.observe(tokens, truth(tokens, 0.0, 0.01))
    assert cost.of(2) == pytest.approx(1.01, abs=0.03)
