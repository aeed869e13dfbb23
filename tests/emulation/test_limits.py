from __future__ import annotations

import pytest

from orchestrator.bench.limits import best_sequential, sequential, unlimited_verifier


def test_known_values() -> None:
    assert sequential(0.8, 0.1, 0) == 1.0
    assert sequential(0.5, 0.25, 2) == pytest.approx((1 + 0.5 + 0.25) / 1.5)
    assert sequential(1.0, 0.1, 5) == pytest.approx(6 / 1.5)
    assert unlimited_verifier(0.8, 0.2) == pytest.approx(1 / 0.36)


def test_the_best_is_better_than_its_neighbours() -> None:
    for a in (0.5, 0.7, 0.9):
        for c in (0.02, 0.1, 0.3):
            best = best_sequential(a, c).candidates
            assert best > 0
            for other in (best - 1, best + 1):
                assert sequential(a, c, other) <= best_sequential(a, c).speed_up
            assert best_sequential(a, c).speed_up < unlimited_verifier(a, c)


def test_what_does_not_pay_is_not_drafted() -> None:
    assert best_sequential(0.2, 0.3).candidates == 0
    assert best_sequential(0.2, 0.3).speed_up == 1.0
