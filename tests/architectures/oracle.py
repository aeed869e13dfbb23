"""What a causal model says by itself, by transformers alone and without any cache.

What comes after n tokens is told by a forward over exactly n tokens: with a rope that depends on
the length, a row in the midst of a longer forward has other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from tests.architectures.architecture import Architecture
from tests.reference import Reference


class Oracle:
    """A model of the catalogue in float32. `prompts` renders texts and conversations."""

    def __init__(self, architecture: Architecture, folder: Path) -> None:
        self.prompts = Reference(folder)
        self._eos_ids = frozenset(architecture.roles.eos_ids)

    def logits(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Float32 logits after each of the last `rows` tokens, [rows, vocabulary]."""
        ends = range(len(ids) - rows + 1, len(ids) + 1)
        return torch.stack([self.prompts.next_logits(ids[:end]) for end in ends])

    def answer(self, prompt_ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Ids of the greedy answer, an EOS included."""
        ids = list(prompt_ids)
        for _ in range(max_new_tokens):
            ids.append(int(self.prompts.next_logits(ids).argmax()))
            if ids[-1] in self._eos_ids:
                break
        return ids[len(prompt_ids) :]
