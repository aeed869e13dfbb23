from __future__ import annotations

import itertools
import random

from orchestrator.speculation.probes import FIRST_STEPS, MOST_STEPS, SHARE, ProbeBudget


def state(budget: ProbeBudget) -> tuple[bool, bool]:
    return budget.allows, budget.full


def test_something_may_be_spent_before_any_time_has_passed() -> None:
    budget = ProbeBudget()
    assert state(budget) == (True, True)
    budget.spend(1.0)
    assert state(budget) == (True, False)
    budget.spend(2 * FIRST_STEPS)
    assert state(budget) == (False, False)


def test_time_gives_a_share_of_itself_back() -> None:
    budget = ProbeBudget()
    budget.spend(FIRST_STEPS + 1)
    budget.passed(0.9 / SHARE)
    assert state(budget) == (False, False)
    budget.passed(0.2 / SHARE)
    assert state(budget) == (True, False)
    budget.passed(1e6)
    assert state(budget) == (True, True)
    budget.spend(2 * FIRST_STEPS)
    assert state(budget) == (False, False)


def test_no_more_than_the_share_is_ever_spent() -> None:
    dice, budget, spent, passed = random.Random(1), ProbeBudget(), 0.0, 0.0
    largest = 3.0
    for _ in range(50_000):
        steps = dice.uniform(0.5, 2.0)
        if budget.allows:
            lost = dice.uniform(0.0, largest)
            budget.spend(lost)
            spent += lost
        budget.passed(steps)
        passed += steps
    assert spent <= MOST_STEPS + largest + SHARE * passed
    assert spent > 0.9 * SHARE * passed


def test_what_a_probe_gains_may_be_spent_again() -> None:
    budget = ProbeBudget()
    budget.spend(FIRST_STEPS + 1)
    budget.spend(-2.0)
    assert budget.allows


def test_what_is_tried_in_vain_is_tried_ever_more_seldom() -> None:
    budget, tried, passed = ProbeBudget(), list[float](), 0.0
    for _ in range(400_000):
        if budget.full:
            tried.append(passed)
            budget.spend(10.0)
        budget.passed(1.0)
        passed += 1.0
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert pauses[:3] == sorted(pauses[:3])
    assert 10 * pauses[0] > pauses[-1] > 5 * pauses[0]
    assert max(pauses) < MOST_STEPS / SHARE
    budget.paid()
    budget.spend(1.0)
    budget.passed(2 * FIRST_STEPS / SHARE)
    assert budget.full
