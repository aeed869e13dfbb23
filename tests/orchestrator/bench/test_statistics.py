"""Numbers about numbers whose answers are known."""

from __future__ import annotations

import pytest

from orchestrator.bench.statistics import Spread, Summary, percentile


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (25, 1.75), (50, 2.5), (90, 3.7), (100, 4.0)]
)
def test_percentiles_lie_between_values_in_proportion(percent: float, expected: float) -> None:
    assert percentile([4, 1, 3, 2], percent) == pytest.approx(expected)


def test_a_summary_has_the_fields_of_load_generators() -> None:
    found = Summary.of([2, 4, 4, 4, 5, 5, 7, 9], "ms")
    assert (found.unit, found.avg, found.min, found.max, found.count) == ("ms", 5, 2, 9, 8)
    assert found.p50 == 4.5
    assert found.p99 == pytest.approx(8.86)
    assert found.std == pytest.approx((32 / 7) ** 0.5)


def test_one_value_has_no_deviation() -> None:
    assert Summary.of([3], "ms").std == 0
    assert Spread.of([3]) == Spread(3, 3, 3, 3, 0, 1)


def test_quartiles() -> None:
    found = Spread.of([1, 2, 3, 4, 5])
    assert (found.q1, found.median, found.q3) == (2, 3, 4)


def test_nothing_has_no_statistics() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
