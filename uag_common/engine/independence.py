"""Whether what a context gets depends on what shares its passes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from uag_common.engine.contexts import Contexts
from uag_common.errors import StartError
from uag_common.model import Part, TokenSequence

TRIES = 4


def check_independence(contexts: Contexts, vocabulary_size: int) -> None:
    """Runs one context alone and with others, whole and in pieces. Raises StartError if a bit of
    its logits differs."""
    ids = _some_ids(6, vocabulary_size)
    alone = _logits(contexts, ids, [], pieces=False)
    for others in range(1, TRIES + 1):
        company = [_some_ids(3 * other + 2, vocabulary_size) for other in range(others)]
        if not torch.equal(alone, _logits(contexts, ids, company, pieces=bool(others % 2))):
            raise StartError(
                "its numbers depend on what shares a forward pass (models with experts are so, and "
                "those that more than two processes share), which DETERMINISTIC=true forbids"
            )


def _some_ids(count: int, vocabulary_size: int) -> list[int]:
    """Spread over the vocabulary, others for each count."""
    return [(7919 * (count + index) + 11) % vocabulary_size for index in range(count)]


def _logits(
    contexts: Contexts, ids: Sequence[int], others: Sequence[Sequence[int]], *, pieces: bool
) -> torch.Tensor:
    """After the last of `ids`, which come last into their passes."""
    sequences = [_filled(contexts, each) for each in (*others, ids)]
    try:
        if pieces:
            contexts.run([Part(sequences[-1], 2, 1)])
        parts = [Part(sequence, sequence.pending(1), 1) for sequence in sequences]
        return contexts.run(parts)[-1].tensor.clone()
    finally:
        for sequence in sequences:
            sequence.drop_cache()


def _filled(contexts: Contexts, ids: Sequence[int]) -> TokenSequence:
    sequence = contexts.new_sequence()
    sequence.extend(ids)
    return sequence
