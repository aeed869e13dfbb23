from __future__ import annotations

import pytest

from orchestrator.speculation.decayed import DecayedMean


def test_the_guess_holds_until_something_is_observed() -> None:
    mean = DecayedMean(3.0, 0.9)
    assert (mean.value, mean.known, mean.evidence) == (3.0, False, 0.0)
    mean.observe(7.0)
    assert (mean.value, mean.known, mean.evidence) == (7.0, True, 1.0)


def test_a_guess_may_count_as_observed() -> None:
    mean = DecayedMean(3.0, 1.0, weight=3.0)
    mean.observe(7.0)
    assert mean.value == pytest.approx(4.0)


def test_few_observations_weigh_the_same_and_old_ones_less() -> None:
    mean = DecayedMean(0.0, 0.9)
    for _ in range(200):
        mean.observe(1.0)
    assert mean.evidence == pytest.approx(10)
    mean.observe(2.0)
    assert mean.value == pytest.approx(1.1)


def test_an_observation_that_counts_less_moves_less() -> None:
    light, usual = DecayedMean(1.0, 0.9, 5.0), DecayedMean(1.0, 0.9, 5.0)
    light.observe(2.0, 0.1)
    usual.observe(2.0)
    assert 1 < light.value < usual.value
    assert light.value == pytest.approx(1 + 0.1 / (5 * 0.9**0.1 + 0.1))
