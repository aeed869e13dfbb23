"""What two sequences begin with in common. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of ids that both begin with."""
    if type(one) is not type(other):
        # Slices are compared, as that is fast, but none of a list equals one of a tuple.
        one, other = tuple(one), tuple(other)
    same, most = 0, min(len(one), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same
