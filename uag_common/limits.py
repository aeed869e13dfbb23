"""Bounds of the contract that both model services check, before any model runs."""

from __future__ import annotations

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


def check_context(needed: int, context_length: int) -> None:
    """Raises PromptTooLongError if a context of `needed` tokens is more than the model holds."""
    if needed > context_length:
        raise PromptTooLongError(
            f"a context of {needed} tokens is needed, the model holds {context_length}"
        )
