"""The limits of a pair beside what was measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.bench.limits import Costs, best_sequential, unlimited_verifier
from orchestrator.bench.way import Way

Measured = Mapping[Way, tuple[float, float] | None]
"""Of each way: its speed over our own target alone, and its tokens per round."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a way can give over plain steps of our own target. `of`: what it assumes.
    `measured`: what the way gave, the median over prompts."""

    name: str
    of: str
    limit: float
    way: Way
    measured: float

    @property
    def efficiency(self) -> float:
        return self.measured / self.limit


def bounds(costs: Costs | None, measured: Measured) -> tuple[Bound, ...]:
    """Those that the measured ways can be held against."""
    found = [] if costs is None else list(_of_model(costs, measured))
    lookup = measured.get(Way.LOOKUP)
    if lookup is not None:
        found.append(_of_lookup(*lookup))
    auto = measured.get(Way.AUTO)
    if auto is not None and found:
        drafted = [each for each in found if each.name != "unlimited_verifier"]
        best = max(drafted, key=lambda each: each.limit)
        found.append(
            Bound(
                "better_of_both",
                f"the greater of the limits above but that of the unlimited verifier: {best.name}; "
                "both drafters in one answer can give more",
                best.limit,
                Way.AUTO,
                auto[0],
            )
        )
    return tuple(found)


def _of_model(costs: Costs, measured: Measured) -> list[Bound]:
    way = Way.MODEL if measured.get(Way.MODEL) else Way.FORCED
    found = measured.get(way)
    if found is None:
        return []
    speed, _ = found
    best = best_sequential(costs.a, costs.c)
    return [
        Bound(
            "best_sequential",
            f"the draft model and the target in turns, {best.candidates} candidates a round (0: do "
            "not draft); a "
            "verification costs one plain step, network and conversion nothing",
            best.speed_up,
            way,
            speed,
        ),
        Bound(
            "unlimited_verifier",
            "the draft model never waits for a verification, of which any number run beside each "
            "other, and always drafts (below 1: do not)",
            unlimited_verifier(costs.a, costs.c),
            way,
            speed,
        ),
    ]


def _of_lookup(speed: float, tokens_per_round: float) -> Bound:
    return Bound(
        "lookup_rounds",
        "the rounds of this way as they were, each at the price of one plain step: its tokens per "
        "round",
        tokens_per_round,
        Way.LOOKUP,
        speed,
    )
