"""The figures of the pairs of models that answered lately. Pure."""

from __future__ import annotations

from orchestrator.speculation.figures import PairFigures
from uag_common.model import ModelDescription

MOST_PAIRS = 8

CHEAPEST, DEAREST = 0.02, 4.0
"""Bounds of what is expected of a draft before it has run."""


class KnownFigures:
    """Of one orchestrator. A model that is replaced by another begins anew."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[ModelDescription, ModelDescription | None], PairFigures] = {}

    def of(self, target: ModelDescription, draft: ModelDescription | None) -> PairFigures:
        """Those of a pair, which begin with what its descriptions tell."""
        figures = self._by_pair.pop((target, draft), None) or PairFigures(_cost(target, draft))
        self._by_pair[target, draft] = figures
        while len(self._by_pair) > MOST_PAIRS:
            del self._by_pair[next(iter(self._by_pair))]
        return figures


def _cost(target: ModelDescription, draft: ModelDescription | None) -> float:
    """A step of the draft by one of the target: steps read all weights."""
    if draft is None or not target.weight_bytes or not draft.weight_bytes:
        return 1.0
    return min(DEAREST, max(CHEAPEST, draft.weight_bytes / target.weight_bytes))
