"""Contexts of a causal language model one after another, each with a cache of transformers' own.

For models that attend to tokens in a way that cannot be packed. A cache holds the keys and values
of all tokens, those too that have left a sliding window, so it can be cut anywhere. Its memory is
transformers' own; blocks only count it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache, PreTrainedModel

from uag_common.engine.context_in_blocks import ContextInBlocks
from uag_common.engine.forward import forward
from uag_common.engine.kv_store import LayerShape
from uag_common.engine.logits import TensorLogits
from uag_common.engine.rope import RopeRegimes
from uag_common.engine.weights import home
from uag_common.kv.pool import BlockPool
from uag_common.model import Part, Rollback


@dataclass(frozen=True, slots=True)
class SoloMemory:
    """What the contexts of a model share: the count of their memory, and when a cache is of no use
    any more."""

    blocks: BlockPool
    regimes: RopeRegimes


class SoloSequence(ContextInBlocks):
    """`uag_common.model.TokenSequence` with a `DynamicCache`."""

    def __init__(self, memory: SoloMemory) -> None:
        super().__init__(memory.blocks, memory.regimes)
        self._memory = memory
        # Without a configuration it keeps all tokens of sliding layers too; the masks see to the
        # windows.
        self._cache = DynamicCache()

    def truncate(self, length: int) -> None:
        del self._ids[length:]
        self._uncache(length)

    def drop_cache(self) -> None:
        self._cache = DynamicCache()
        self._table.truncate(0)

    @torch.inference_mode()
    def fork(self, length: int) -> SoloSequence:
        blocks = self._memory.blocks
        other = SoloSequence(self._memory)
        other._ids = self._ids[:length]
        other._long = self._long
        cached = min(self.cached, length, blocks.free * blocks.block_tokens)
        if cached:
            other._table.grow(cached)
            other._table.fill(cached)
            for layer, keys, values in _keys_and_values(self._cache):
                # An empty layer copies what it is given.
                other._cache.update(keys[..., :cached, :], values[..., :cached, :], layer)
        return other

    def prepare(self, part: Part) -> int:
        """Makes room for the part's tokens; how many rows of logits it gets. Raises
        NoBlocksError."""
        rows = part.rows if part.tokens == self.pending(part.rows) else 0
        self._uncache(self._usable(part.rows))
        self._long = self.long
        self._table.grow(part.tokens)
        return rows

    def run(self, network: PreTrainedModel, tokens: int, rows: int) -> torch.Tensor:
        """The logits after each of the last `rows` of the next tokens, for which there is room."""
        start = self.cached
        ids = self._ids[start : start + tokens]
        boundary = self._memory.regimes.boundary
        if self._long and start + tokens <= boundary:
            # The model takes the regime from the largest position that it sees.
            positions = [*range(start, start + tokens), boundary]
            logits = self._forward(network, [*ids, 0], rows=0, positions=positions)
            self._cache.crop(-1)
        else:
            logits = self._forward(network, ids, rows)
        self._table.fill(tokens)
        return logits

    def _forward(
        self,
        network: PreTrainedModel,
        ids: Sequence[int],
        rows: int,
        positions: Sequence[int] | None = None,
    ) -> torch.Tensor:
        given = {}
        if positions is not None:
            given["position_ids"] = torch.tensor([positions], device=home(network))
        return forward(network, ids, rows, cache=self._cache, use_cache=True, **given).logits

    def _uncache(self, length: int) -> None:
        """Cuts the cache to `length` tokens if it holds more."""
        if self.cached > length:
            # It takes the negative number of tokens to remove.
            self._cache.crop(length - self.cached)
        self._table.truncate(length)


class SoloContexts:
    """Makes contexts, and runs parts of them."""

    rollback = Rollback.TRUNCATE
    most_parts = 1

    def __init__(self, network: PreTrainedModel, memory: SoloMemory) -> None:
        self._network = network
        self._memory = memory

    @property
    def blocks(self) -> BlockPool:
        return self._memory.blocks

    @property
    def longest(self) -> int:
        return self._memory.blocks.tokens

    def new_sequence(self) -> SoloSequence:
        return SoloSequence(self._memory)

    def run(self, parts: Sequence[Part]) -> list[TensorLogits]:
        """As `uag_common.model.Model.run`; more parts than one run one after another."""
        sequences = [_sequence(part) for part in parts]
        rows = [sequence.prepare(part) for sequence, part in zip(sequences, parts, strict=True)]
        try:
            return [
                TensorLogits.of(sequence.run(self._network, part.tokens, count))
                for sequence, part, count in zip(sequences, parts, rows, strict=True)
            ]
        except BaseException:
            # Some layers may hold the new tokens and some not.
            for sequence in sequences:
                sequence.drop_cache()
            raise


def _sequence(part: Part) -> SoloSequence:
    if not isinstance(part.sequence, SoloSequence):
        raise TypeError(f"{type(part.sequence).__name__} is no context of this model")
    return part.sequence


def layers_of_cache(network: PreTrainedModel) -> tuple[LayerShape, ...]:
    """What the layers of a model keep of a token, by a run of one."""
    cache = DynamicCache()
    forward(network, [0], 0, cache=cache, use_cache=True)
    return tuple(
        LayerShape(keys.shape[1], keys.shape[-1], values.shape[-1], keys.dtype, keys.device)
        for _, keys, values in _keys_and_values(cache)
    )


def _keys_and_values(cache: DynamicCache) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """The number of each layer that has any, and what it has, [1, heads, cached, size]."""
    for number, layer in enumerate(cache.layers):
        if layer.is_initialized:
            yield number, layer.keys, layer.values
