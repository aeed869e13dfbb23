"""The keys and values of all cached tokens: two tensors a layer, one slot a token.

Knows slots, not whose they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from uag_common.kv.table import Copy, Run


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What one layer keeps of a token: [heads, key_size] and [heads, value_size], on a device."""

    heads: int
    key_size: int
    value_size: int
    dtype: torch.dtype
    device: torch.device

    @property
    def bytes(self) -> int:
        """Of one token."""
        return self.heads * (self.key_size + self.value_size) * self.dtype.itemsize


class KvStore:
    """Room for a number of tokens. On a CPU, memory is taken where something is written only."""

    def __init__(self, layers: Sequence[LayerShape], slots: int) -> None:
        self._keys = [_empty(slots, layer, layer.key_size) for layer in layers]
        self._values = [_empty(slots, layer, layer.value_size) for layer in layers]

    @torch.inference_mode()
    def copy(self, copies: Iterable[Copy]) -> None:
        """In their order, in all layers."""
        for source, target, count in copies:
            for tensor in (*self._keys, *self._values):
                tensor[target : target + count] = tensor[source : source + count]

    def write(
        self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Keys and values, [1, heads, tokens, size], into the slots, [tokens]."""
        self._keys[layer].index_copy_(0, slots, keys[0].transpose(0, 1))
        self._values[layer].index_copy_(0, slots, values[0].transpose(0, 1))

    def read(self, layer: int, runs: Sequence[Run]) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the runs, [1, heads, tokens, size]: where they lie, or a copy if they
        lie in more than one piece."""
        return _joined(self._keys[layer], runs), _joined(self._values[layer], runs)


def _empty(slots: int, layer: LayerShape, size: int) -> torch.Tensor:
    return torch.empty(slots, layer.heads, size, dtype=layer.dtype, device=layer.device)


def _joined(tensor: torch.Tensor, runs: Sequence[Run]) -> torch.Tensor:
    if len(runs) == 1:
        (first, count), (_, heads, size) = runs[0], tensor.shape
        # One call where slicing, turning and adding a dimension are three, in each layer.
        return tensor.as_strided(
            (1, heads, count, size), (0, size, heads * size, 1), first * heads * size
        )
    pieces = torch.cat([tensor[first : first + count] for first, count in runs])
    return pieces.transpose(0, 1)[None]
