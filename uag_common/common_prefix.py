"""What two sequences begin with in common. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of ids that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    different = (position for position, (left, right) in pairs if left != right)
    return next(different, min(len(one), len(other)))
