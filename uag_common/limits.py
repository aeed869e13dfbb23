"""Bounds of the contract, and how they are checked before any model runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from uag_common.errors import InvalidRequestError, PromptTooLongError

MAX_DRAFT_TOKENS = 64
"""Most tokens of one proposal."""

MAX_CANDIDATES = 64
"""Most candidates of one verification."""

MAX_TOP_LOGPROBS = 20
"""Most tokens at one place whose log-probabilities are told beside that of the chosen one."""


def check_ids(field: str, ids: Sequence[int], vocabulary_size: int) -> None:
    """Raises InvalidRequestError if an id is outside the model's vocabulary."""
    largest = max(ids, default=0)
    if largest >= vocabulary_size:
        raise InvalidRequestError(
            field, f"id {largest} is outside the vocabulary of {vocabulary_size} ids"
        )


def check_count(field: str, count: int, most: int, unit: str) -> None:
    """Raises InvalidRequestError if a field has more than the most."""
    if count > most:
        raise InvalidRequestError(field, f"has {count} {unit}, at most {most} are allowed")


def check_range(field: str, value: float | None, low: float, high: float = math.inf) -> None:
    """Raises InvalidRequestError for a value outside the range, for infinity and for no number."""
    # A NaN is in no range.
    if value is None or (low <= value <= high and value < math.inf):
        return
    told = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
    raise InvalidRequestError(field, f"is {value:g}, must be {told}")


def check_above_zero(field: str, value: float | None, high: float = math.inf) -> None:
    """As `check_range` from 0, which itself is refused."""
    if value is None or (0 < value <= high and value < math.inf):
        return
    told = "" if high == math.inf else f" and at most {high:g}"
    raise InvalidRequestError(field, f"is {value:g}, must be above 0{told}")


def check_context(needed: int, context_length: int) -> None:
    """Raises PromptTooLongError if a context of `needed` tokens is more than the model holds."""
    if needed > context_length:
        raise PromptTooLongError(
            f"a context of {needed} tokens is needed, the model holds {context_length}"
        )
