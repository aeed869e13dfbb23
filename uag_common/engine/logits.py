"""The logits of one forward as a tensor. Knows no decoding."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import torch

from uag_common.model import Logits


class Greatest(NamedTuple):
    """The token with the greatest logit of a row, the lowest id on an exact tie; or where there are
    any, the first that is no number."""

    id: int
    logit: float


class TensorLogits:
    """Float32 logits, `tensor` is [rows, vocabulary]; `uag_common.model.Logits` says of what."""

    def __init__(self, logits: torch.Tensor) -> None:
        """`logits` is [rows, vocabulary] of any float type; transformers' own search, too, compares
        them as float32."""
        self.tensor = logits.float()

    @property
    def rows(self) -> int:
        return len(self.tensor)

    @cached_property
    def greatest(self) -> list[Greatest]:
        """Of each row; all in one operation, so that a device is waited for once."""
        # torch.argmax gives the first of equal maxima, and takes NaN for the greatest.
        ids = self.tensor.argmax(-1)
        logits = self.tensor.gather(-1, ids[:, None])[:, 0]
        return [Greatest(*pair) for pair in zip(ids.tolist(), logits.tolist(), strict=True)]


def tensor_logits(logits: Logits) -> TensorLogits:
    """TypeError for logits that are not this engine's."""
    if not isinstance(logits, TensorLogits):
        raise TypeError(f"{type(logits).__name__} are not this engine's logits")
    return logits
