"""Numbers about numbers. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """A metric over requests, with the fields that load generators give it; `std` is that of a
    sample, 0 of a single value."""

    unit: str
    avg: float
    min: float
    max: float
    p50: float
    p90: float
    p99: float
    std: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float], unit: str) -> Summary:
        """Raises ValueError if there are none."""
        return cls(
            unit=unit,
            avg=statistics.fmean(values),
            min=min(values),
            max=max(values),
            p50=percentile(values, 50),
            p90=percentile(values, 90),
            p99=percentile(values, 99),
            std=_std(values),
            count=len(values),
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """Of paired ratios; `q1` and `q3` are the quartiles."""

    median: float
    q1: float
    q3: float
    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises ValueError if there are none."""
        return cls(
            median=percentile(values, 50),
            q1=percentile(values, 25),
            q3=percentile(values, 75),
            mean=statistics.fmean(values),
            std=_std(values),
            count=len(values),
        )


def percentile(values: Sequence[float], percent: float) -> float:
    """Between two values in proportion. Raises ValueError if there are none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _std(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
