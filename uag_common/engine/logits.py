"""The logits of one forward pass as a tensor, and each context's share of it. Knows no decoding."""

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


class LogitsOfPass:
    """Float32 logits of all contexts of a pass; `tensor` is [rows, vocabulary]."""

    def __init__(self, logits: torch.Tensor) -> None:
        """`logits` is [rows, vocabulary] of any float type; transformers' own search, too, compares
        them as float32."""
        self.tensor = logits.float()

    @cached_property
    def greatest(self) -> list[Greatest]:
        """Of each row; all in one operation, so that a device is waited for once."""
        # torch.argmax gives the first of equal maxima, and takes NaN for the greatest.
        ids = self.tensor.argmax(-1)
        logits = self.tensor.gather(-1, ids[:, None])[:, 0]
        return [Greatest(*pair) for pair in zip(ids.tolist(), logits.tolist(), strict=True)]

    def share(self, first: int, count: int) -> TensorLogits:
        """Those of one context: `count` rows from `first` on."""
        return TensorLogits(self, first, count)


class TensorLogits:
    """`uag_common.model.Logits` of one context."""

    def __init__(self, whole: LogitsOfPass, first: int, count: int) -> None:
        self._whole = whole
        self._share = slice(first, first + count)
        self.rows = count

    @classmethod
    def of(cls, logits: torch.Tensor) -> TensorLogits:
        """All of a tensor, [rows, vocabulary]."""
        return LogitsOfPass(logits).share(0, len(logits))

    @property
    def tensor(self) -> torch.Tensor:
        """Float32, [rows, vocabulary]."""
        return self._whole.tensor[self._share]

    @property
    def greatest(self) -> list[Greatest]:
        """Of each row."""
        return self._whole.greatest[self._share]


def tensor_logits(logits: Logits) -> TensorLogits:
    """TypeError for logits that are not this engine's."""
    if not isinstance(logits, TensorLogits):
        raise TypeError(f"{type(logits).__name__} are not this engine's logits")
    return logits
