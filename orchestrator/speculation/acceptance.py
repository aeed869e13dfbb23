"""How likely candidates are to be accepted. Pure.

Counted over *examined* candidates: the accepted ones and the first rejected one. What is old counts
less, and what is not known yet is taken from a prior: an estimate of its own, shared by others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

TOLD_APART = 16
"""Places that have an estimate of their own; later ones share the last."""

PLACES_ALIKE = 3.0
"""How many times the prior's weight it takes to say that one place is unlike the others."""


class Expected(Protocol):
    """An estimate for each place, from 0."""

    def at(self, place: int) -> float:
        """The chance that the candidate there is accepted if those before it are."""


@dataclass(frozen=True, slots=True)
class Known:
    """Fixed; places past the last one are as the last."""

    chances: Sequence[float]

    def at(self, place: int) -> float:
        return self.chances[min(place, len(self.chances) - 1)]


@dataclass(frozen=True, slots=True)
class From:
    """Another estimate from a later place on, and no further than `last`, if it does not begin
    there."""

    expected: Expected
    first: int
    last: int

    def at(self, place: int) -> float:
        return self.expected.at(max(self.first, min(self.first + place, self.last)))


class Acceptance:
    """Decayed counts by place, over a prior that weighs as much as `weight` examined candidates.
    What is seen at one place tells something of the others: by how much the prior is wrong here."""

    def __init__(self, prior: Expected, weight: float, keep: float) -> None:
        """`keep`: what of the counts is left after each round."""
        self._prior = prior
        self._weight = weight
        self._keep = keep
        self._examined = [0.0] * TOLD_APART
        self._accepted = [0.0] * TOLD_APART
        self._all_examined = self._all_accepted = self._all_expected = 0.0

    @property
    def evidence(self) -> float:
        """Examined candidates that still count."""
        return self._all_examined

    def observe(
        self, examined: int, accepted: int, first: int = 0, last: int = TOLD_APART - 1
    ) -> None:
        """Of a proposal so many were looked at, and so many accepted; the first stood at the place
        `first`, and those that would stand past `last` count there."""
        self.fade()
        for number in range(examined):
            place = min(max(first, min(first + number, last)), TOLD_APART - 1)
            self._examined[place] += 1
            self._accepted[place] += number < accepted
            self._all_expected += self._prior.at(place)
        self._all_examined += examined
        self._all_accepted += accepted

    def fade(self) -> None:
        """A round has passed."""
        keep = self._keep
        self._examined = [keep * count for count in self._examined]
        self._accepted = [keep * count for count in self._accepted]
        self._all_examined *= keep
        self._all_accepted *= keep
        self._all_expected *= keep

    def at(self, place: int) -> float:
        place, weight = min(place, TOLD_APART - 1), self._weight
        rejected = self._all_examined - self._all_accepted + weight
        expected = self._all_examined - self._all_expected + weight
        better = (self._all_accepted + weight) / (self._all_expected + weight) * expected / rejected
        prior = self._prior.at(place)
        prior = prior * better / (1 - prior + prior * better)
        weight *= PLACES_ALIKE
        return (self._accepted[place] + weight * prior) / (self._examined[place] + weight)


def expected_accepted(chances: Expected, most: int) -> list[float]:
    """At n, from 0 to `most`: how many of n candidates are accepted on average."""
    expected, survival, chance = [0.0], 1.0, 0.0
    for place in range(most):
        if place < TOLD_APART:
            chance = chances.at(place)
        survival *= chance
        expected.append(expected[-1] + survival)
    return expected
