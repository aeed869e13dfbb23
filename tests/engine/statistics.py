"""Chi-square tests. Their inputs are the same in each run, so what passes once passes always."""

from __future__ import annotations

import torch


def goodness_of_fit(observed: torch.Tensor, expected: torch.Tensor) -> float:
    """The probability of counts as far from `expected` (both [cells]) or further, by chance."""
    statistic = ((observed - expected) ** 2 / expected).sum()
    return upper_tail(float(statistic), len(expected) - 1)


def independence(left: torch.Tensor, right: torch.Tensor, cells: int = 16) -> float:
    """The same for pairs of numbers from 0 to 1, against all cells being equally likely: it falls
    where either is not uniform or one says something of the other."""
    places = (left * cells).long() * cells + (right * cells).long()
    observed = torch.bincount(places, minlength=cells * cells).double()
    return goodness_of_fit(observed, torch.full_like(observed, len(left) / cells**2))


def upper_tail(statistic: float, degrees_of_freedom: int) -> float:
    """Of the chi-square distribution."""
    half = torch.tensor([degrees_of_freedom / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))
