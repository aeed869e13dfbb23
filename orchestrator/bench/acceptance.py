"""How many candidates were right, and whose they were. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.client import SpeculationFigures


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Accepted of examined candidates: `pooled` over all requests, and the mean over those that
    had any examined."""

    examined: int
    accepted: int
    pooled: float
    mean: float


def by_model(figures: SpeculationFigures) -> tuple[int, int]:
    """Examined and accepted candidates of the draft model."""
    examined = figures.candidates_examined - figures.lookup_examined
    return examined, figures.candidates_accepted - figures.lookup_accepted


def by_lookup(figures: SpeculationFigures) -> tuple[int, int]:
    """The same of looking up."""
    return figures.lookup_examined, figures.lookup_accepted


def acceptance(
    figures: Sequence[SpeculationFigures], count: Callable[[SpeculationFigures], tuple[int, int]]
) -> Acceptance | None:
    """None if nothing was examined."""
    counts = [(examined, accepted) for examined, accepted in map(count, figures) if examined]
    if not counts:
        return None
    examined = sum(of for of, _ in counts)
    accepted = sum(right for _, right in counts)
    return Acceptance(
        examined=examined,
        accepted=accepted,
        pooled=accepted / examined,
        mean=sum(right / of for of, right in counts) / len(counts),
    )
