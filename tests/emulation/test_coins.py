from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.emulation.coins import toss
from benchmarks.emulation.scenario import Scenario, Telling

SCENARIO = Scenario("some-01", 0.03, 0.1, 0.8)
INFORMED = replace(SCENARIO, telling=Telling.INFORMED)


@pytest.mark.parametrize("scenario", [SCENARIO, INFORMED], ids=["constant", "informed"])
@pytest.mark.parametrize("acceptance", [0.0, 0.5, 0.8, 0.93, 1.0])
def test_an_answer_has_the_acceptance_that_is_asked_for(
    scenario: Scenario, acceptance: float
) -> None:
    for seed in range(20):
        coins = toss(replace(scenario, acceptance=acceptance, seed=seed), 160)
        assert sum(coins.right) == pytest.approx(160 * acceptance, abs=1.5)
        assert sum(coins.probabilities) == pytest.approx(160 * acceptance, abs=1)


def test_costs_change_nothing() -> None:
    assert toss(replace(SCENARIO, step_seconds=0.06, cost=0.3), 50) == toss(SCENARIO, 50)
    assert toss(replace(SCENARIO, seed=1), 50) != toss(SCENARIO, 50)


def test_a_probability_is_the_share_of_right_ones() -> None:
    tossed = [
        pair
        for seed in range(200)
        for coins in [toss(replace(INFORMED, seed=seed), 100)]
        for pair in zip(coins.probabilities, coins.right, strict=True)
    ]
    for low in (0.4, 0.6, 0.8):
        right = [is_right for p, is_right in tossed if low <= p < low + 0.1]
        assert sum(right) / len(right) == pytest.approx(low + 0.05, abs=0.04)


def test_what_is_wrong_at_a_token_tells_nothing_of_the_next() -> None:
    after_right, after_wrong = list[bool](), list[bool]()
    for seed in range(200):
        right = toss(replace(SCENARIO, seed=seed), 100).right
        for before, now in pairwise(right):
            (after_right if before else after_wrong).append(now)
    for followers in (after_right, after_wrong):
        assert sum(followers) / len(followers) == pytest.approx(0.8, abs=0.025)
