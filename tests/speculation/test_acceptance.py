"""How likely candidates are: counts over a prior, by place."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.speculation.acceptance import (
    TOLD_APART,
    Acceptance,
    From,
    Known,
    expected_accepted,
)

PRIOR = Known((0.6,))


def learnt(chance: float, proposals: int, size: int = 6, keep: float = 0.998) -> Acceptance:
    dice, acceptance = random.Random(1), Acceptance(PRIOR, 10.0, keep)
    for _ in range(proposals):
        accepted = 0
        while accepted < size and dice.random() < chance:
            accepted += 1
        acceptance.observe(min(accepted + 1, size), accepted)
    return acceptance


def test_what_is_not_known_is_the_prior() -> None:
    acceptance = Acceptance(Known((0.3, 0.7)), 10.0, 0.99)
    assert [acceptance.at(place) for place in (0, 1, 2, 50)] == pytest.approx([0.3, 0.7, 0.7, 0.7])
    assert acceptance.evidence == 0


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_the_chance_is_learnt_at_all_places(chance: float) -> None:
    acceptance = learnt(chance, 400)
    assert acceptance.at(0) == pytest.approx(chance, abs=0.06)
    # Few proposals came so far, or none; what was seen before them tells of them as well.
    assert acceptance.at(9) == pytest.approx(chance, abs=0.15)


def test_what_is_old_counts_less() -> None:
    acceptance = learnt(0.9, 200, keep=0.98)
    before = acceptance.at(0)
    for _ in range(200):
        acceptance.observe(1, 0)
    assert acceptance.at(0) < 0.2 < 0.8 < before
    assert acceptance.evidence == pytest.approx(50, rel=0.1)


def test_places_are_told_apart() -> None:
    acceptance = Acceptance(PRIOR, 10.0, 0.998)
    for _ in range(300):
        acceptance.observe(2, 1)
    assert acceptance.at(0) > 0.9
    assert acceptance.at(1) < 0.2


def test_a_proposal_may_begin_at_a_later_place() -> None:
    acceptance = Acceptance(PRIOR, 10.0, 0.998)
    for _ in range(300):
        acceptance.observe(1, 0, first=4)
    # It tells something of the other places, but less.
    assert acceptance.at(4) < acceptance.at(0) < 0.6
    assert From(acceptance, 4, 9).at(0) == acceptance.at(4)
    assert From(acceptance, 4, 9).at(50) == acceptance.at(9)
    assert From(acceptance, 12, 9).at(3) == acceptance.at(12)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)), max_size=60))
def test_a_chance_is_never_certain(seen: list[tuple[int, int, int]]) -> None:
    acceptance = Acceptance(PRIOR, 10.0, 0.97)
    for examined, accepted, first in seen:
        acceptance.observe(examined, min(examined, accepted), first)
    assert all(0 < acceptance.at(place) < 1 for place in range(TOLD_APART + 5))


def test_an_estimate_may_stand_on_another_one() -> None:
    of_pair = learnt(0.9, 400)
    of_answer = Acceptance(of_pair, 8.0, 0.97)
    assert of_answer.at(0) == pytest.approx(of_pair.at(0))
    for _ in range(60):
        of_answer.observe(1, 0)
    assert of_answer.at(0) < 0.3 < of_pair.at(0)


def test_the_expected_number_is_the_sum_of_what_survives() -> None:
    assert expected_accepted(Known((0.5, 0.2)), 3) == pytest.approx([0, 0.5, 0.6, 0.62])
    assert expected_accepted(Known((0.5,)), 0) == [0]
