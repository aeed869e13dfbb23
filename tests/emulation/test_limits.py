from __future__ import annotations

import pytest

from benchmarks.emulation.limits import (
    best_draft_tokens,
    sequential_limit,
    tokens_per_step,
    unlimited_limit,
)


def test_known_values() -> None:
    assert tokens_per_step(0.8, 0.1, 0) == 1.0
    assert tokens_per_step(0.5, 0.25, 2) == pytest.approx((1 + 0.5 + 0.25) / 1.5)
    assert tokens_per_step(1.0, 0.1, 5) == pytest.approx(6 / 1.5)
    assert unlimited_limit(0.8, 0.2) == pytest.approx(1 / 0.36)


def test_the_best_is_better_than_its_neighbours() -> None:
    for a in (0.5, 0.7, 0.9):
        for c in (0.02, 0.1, 0.3):
            best = best_draft_tokens(a, c)
            assert best > 0
            for other in (best - 1, best + 1):
                assert tokens_per_step(a, c, other) <= sequential_limit(a, c)
            assert sequential_limit(a, c) < unlimited_limit(a, c)


def test_what_does_not_pay_is_not_drafted() -> None:
    assert best_draft_tokens(0.2, 0.3) == 0
    assert sequential_limit(0.2, 0.3) == 1.0
