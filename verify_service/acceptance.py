"""Which candidates stand. Pure: plain ids only."""

from __future__ import annotations

from collections.abc import Sequence


def count_accepted(candidates: Sequence[int], chosen: Sequence[int]) -> int:
    """How many candidates, from the first on, are what the target chose at their positions.

    `chosen` has one id more than `candidates`: the target's choice after the last of them.
    (Leviathan et al., arXiv 2211.17192, for a target that chooses deterministically.)
    """
    for position, candidate in enumerate(candidates):
        if candidate != chosen[position]:
            return position
    return len(candidates)
