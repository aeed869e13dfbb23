"""What is left of a prompt that must be short. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def truncate(ids: Sequence[int], length: int, start_ids: Sequence[int]) -> tuple[int, ...]:
    """The last `length` of the ids, which must not be 0, and before them `start_ids` if the prompt
    begins with these: what the tokenizer puts before any text is not counted."""
    start = tuple(start_ids) if tuple(ids[: len(start_ids)]) == tuple(start_ids) else ()
    return (*start, *ids[len(start) :][-length:])
