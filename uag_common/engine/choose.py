"""How a token is chosen from logits. The one place: the target and the draft both choose here."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Rows:
    """Choices over rows of logits; `uag_common.model.ChosenRows` says what they mean."""

    ids: tuple[int, ...]
    logits: torch.Tensor
    """Float32, [rows, vocabulary]."""

    def logprob(self, row: int) -> float:
        logits = self.logits[row]
        return float(logits[self.ids[row]] - logits.logsumexp(-1))


def choose(logits: torch.Tensor) -> Rows:
    """Greedy: the most probable token of each row, the lowest id on an exact tie.

    `logits` is [rows, vocabulary] of any float type; it is compared as float32, as transformers'
    greedy search does.
    """
    exact = logits.float()
    # torch.argmax gives the first of equal maxima.
    return Rows(tuple(exact.argmax(-1).tolist()), exact)
