"""What a recurrent or hybrid model remembers of the tokens that it has run, and copies of it.

States of convolutions and recurrences are overwritten token by token, so the only way back is a
copy. Keys and values of hybrids are kept for all tokens, and are cut. Knows no sessions and no
blocks.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from uag_common.engine.forward import forward
from uag_common.engine.kv_store import LayerShape

Kept: TypeAlias = Any
"""What `keep` of a memory gave. Memories of the same kind alone know what it is."""


TOKENS_FOR_ONE = 8
"""So many tokens in one pass take as long as one alone: measured with a Mamba and a Jamba on a
CPU."""


@dataclass(frozen=True, slots=True)
class MemoryShape:
    """What a context takes: `bytes` however long it is, and for each token what `layers` say."""

    bytes: int
    layers: tuple[LayerShape, ...]


class Memory(Protocol):
    """What a model remembers of one context."""

    def run(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Runs the next tokens: the logits after each of the last `rows`, [rows, vocabulary].
        After an error the memory is of no use any more."""

    def keep(self) -> Kept:
        """A copy of what cannot be cut; later runs do not change it."""

    def back_to(self, kept: Kept, length: int) -> Memory:
        """A memory of its own, as this one was at `length` tokens, when `kept` was copied."""

    def shape(self) -> MemoryShape:
        """Of a memory that has run something."""


def new_memory(network: PreTrainedModel) -> Memory:
    """Of no tokens."""
    given = inspect.signature(network.forward).parameters
    return StateMemory(network) if "state" in given else CacheMemory(network)


class CacheMemory:
    """A cache of transformers, with a layer of its kind for each layer of the model."""

    def __init__(self, network: PreTrainedModel) -> None:
        self._network = network
        self._cache = DynamicCache(config=network.config)

    def run(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        return forward(self._network, ids, rows, cache=self._cache, use_cache=True).logits

    @torch.inference_mode()
    def keep(self) -> Kept:
        return [_copied(layer) for layer in self._cache.layers]

    @torch.inference_mode()
    def back_to(self, kept: Kept, length: int) -> CacheMemory:
        other = CacheMemory(self._network)
        other._cache.layers = [_copied(layer) for layer in kept]
        for layer, grown in zip(other._cache.layers, self._cache.layers, strict=True):
            if _grows(layer) and layer.is_initialized:
                layer.keys = grown.keys[..., :length, :]
                layer.values = grown.values[..., :length, :]
        return other

    def shape(self) -> MemoryShape:
        layers = self._cache.layers
        size = sum(tensor.nbytes for layer in layers for tensor in _states(layer))
        pairs = [(layer.keys, layer.values) for layer in layers if _has_keys(layer)]
        return MemoryShape(size, tuple(_layer_shape(*pair) for pair in pairs))


class StateMemory:
    """States that a model takes and gives as a list (RWKV)."""

    def __init__(self, network: PreTrainedModel) -> None:
        self._network = network
        self._state: list[torch.Tensor] | None = None

    def run(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        logits, output = forward(self._network, ids, rows, state=self._state, use_cache=True)
        self._state = output.state
        return logits

    @torch.inference_mode()
    def keep(self) -> Kept:
        return [tensor.clone() for tensor in self._state or ()]

    @torch.inference_mode()
    def back_to(self, kept: Kept, length: int) -> StateMemory:  # noqa: ARG002 - nothing grows
        other = StateMemory(self._network)
        other._state = [tensor.clone() for tensor in kept]
        return other

    def shape(self) -> MemoryShape:
        return MemoryShape(sum(tensor.nbytes for tensor in self._state or ()), ())


NewMemory: TypeAlias = Callable[[], Memory]


class OneByOne:
    """Memory of a model that is right about several tokens at once only where they are the first
    (Mamba in transformers). Runs them one by one, or all from the beginning if that is faster."""

    def __init__(
        self, new: NewMemory, memory: Memory | None = None, ids: Sequence[int] = ()
    ) -> None:
        """`ids`: those that `memory` has run."""
        self._new = new
        self._memory = new() if memory is None else memory
        self._ids = [*ids]

    def run(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        self._ids += ids
        if len(self._ids) <= TOKENS_FOR_ONE * len(ids):
            self._memory = self._new()
            return self._memory.run(self._ids, rows)
        first = len(ids) - rows
        return torch.cat(
            [self._memory.run([token_id], int(at >= first)) for at, token_id in enumerate(ids)]
        )

    def keep(self) -> Kept:
        return self._memory.keep()

    def back_to(self, kept: Kept, length: int) -> OneByOne:
        return OneByOne(self._new, self._memory.back_to(kept, length), self._ids[:length])

    def shape(self) -> MemoryShape:
        return self._memory.shape()


def memory_shape(new: NewMemory) -> MemoryShape:
    """What contexts with such memories take, by a run of two tokens."""
    memory = new()
    memory.run([0, 0], 0)
    return memory.shape()


def _grows(layer: Any) -> bool:
    """Whether its keys and values are those of all tokens."""
    return isinstance(layer, DynamicLayer) and not isinstance(layer, DynamicSlidingWindowLayer)


def _copied(layer: Any) -> Any:
    """A layer of its own, but for keys and values: these are replaced, never written into. Those of
    all tokens are left out: a copy must not hold them once the context is shorter."""
    twin = copy.copy(layer)
    vars(twin).update((name, _cloned(value)) for name, value in _others(layer))
    if _grows(layer):
        twin.keys = twin.values = None
    return twin


def _cloned(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _cloned(each) for key, each in value.items()}
    return value


def _others(layer: Any) -> Iterator[tuple[str, Any]]:
    """What a layer holds besides keys and values, by name."""
    return ((name, value) for name, value in vars(layer).items() if name not in _KEYS_AND_VALUES)


_KEYS_AND_VALUES = frozenset({"keys", "values"})


def _states(layer: Any) -> Iterator[torch.Tensor]:
    for _, value in _others(layer):
        for each in value.values() if isinstance(value, dict) else (value,):
            if isinstance(each, torch.Tensor):
                yield each


def _has_keys(layer: Any) -> bool:
    return isinstance(getattr(layer, "keys", None), torch.Tensor)


def _layer_shape(keys: torch.Tensor, values: torch.Tensor) -> LayerShape:
    return LayerShape(keys.shape[1], keys.shape[-1], values.shape[-1], keys.dtype, keys.device)
