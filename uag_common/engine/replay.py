"""Contexts of recurrent and hybrid models: what cannot be cut is copied in time, and what was
rolled back too far is run again.

Knows where a copy is worth its price; how it is made is in `recurrent`. Blocks only count memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from uag_common.engine.logits import TensorLogits
from uag_common.engine.recurrent import Kept, Memory, MemoryShape, NewMemory
from uag_common.engine.rope import UNBOUNDED
from uag_common.kv.pool import BlockPool
from uag_common.kv.table import BlockTable
from uag_common.model import Part, Rollback

MOST_SNAPSHOTS = 3
"""A context's: one where its prompt ends, and one at the start of each of the last two rounds. Two,
since a draft's tokens before a round can turn out to be spelled otherwise."""


def bytes_of_states(shape: MemoryShape) -> int:
    """What a context takes in memory however long it is, with all its snapshots."""
    return shape.bytes * (1 + MOST_SNAPSHOTS)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A context's memory as it was after its first `length` tokens."""

    length: int
    kept: Kept


@dataclass(frozen=True, slots=True)
class ReplayMemory:
    """What the contexts of a model share: how their memories begin, the count of them, and how many
    blocks a context takes besides those of its tokens."""

    new: NewMemory
    blocks: BlockPool
    state_blocks: int


class ReplaySequence:
    """`uag_common.model.TokenSequence` with a memory that goes back to snapshots."""

    def __init__(self, shared: ReplayMemory) -> None:
        self._shared = shared
        self._ids: list[int] = []
        self._memory: Memory = shared.new()
        self._snapshots: list[Snapshot] = []
        """Of the memory's past, the shortest first."""
        self._cached = 0
        self._table = BlockTable(shared.blocks)
        self._runs = 0
        """Since the last rollback: those that gave logits."""

    @property
    def ids(self) -> Sequence[int]:
        return self._ids

    @property
    def cached(self) -> int:
        return self._cached

    @property
    def cache_bytes(self) -> int:
        return self._table.bytes

    def truncate(self, length: int) -> None:
        del self._ids[length:]
        self._go_back(length)
        self._runs = 0

    def extend(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    def drop_cache(self) -> None:
        self._memory = self._shared.new()
        self._snapshots.clear()
        self._cached = 0
        self._table.truncate(0)

    def reach(self, length: int) -> int:  # noqa: ARG002 - it is so at any length
        return UNBOUNDED

    def pending(self, rows: int) -> int:
        length = len(self._ids)
        if not 1 <= rows <= length:
            raise ValueError(f"{rows} rows asked of a context of {length} tokens")
        return length - self._nearest(length - rows)

    def _nearest(self, length: int) -> int:
        """The most of the first `length` tokens that the memory can go back to."""
        if self._cached <= length:
            return self._cached
        return max((each.length for each in self._snapshots if each.length <= length), default=0)

    def blocks_for(self, tokens: int) -> int:
        return self._table.needed(tokens + self._states())

    def _states(self) -> int:
        """What is to be counted with the next tokens, as tokens, for the memory's states."""
        blocks = self._shared.blocks
        return 0 if self._table.tokens else self._shared.state_blocks * blocks.block_tokens

    def fork(self, length: int) -> ReplaySequence:
        other = ReplaySequence(self._shared)
        other._ids = self._ids[:length]
        cached = self._nearest(length)
        if cached and other.blocks_for(cached) <= self._shared.blocks.free:
            other._count(cached)
            other._memory = self._at(cached)
        return other

    def prepare(self, part: Part) -> int:
        """Goes back to where the part begins, and makes room for its tokens; how many rows of
        logits it gets. Raises NoBlocksError."""
        rows = part.rows if part.tokens == self.pending(part.rows) else 0
        self._go_back(len(self._ids) - part.rows)
        self._table.grow(part.tokens + self._states())
        return rows

    def run(self, tokens: int, rows: int) -> torch.Tensor:
        """The logits after each of the last `rows` of the next tokens, for which there is room."""
        end = self._cached + tokens
        if rows:
            self._keep_start(end - rows, rows)
            self._runs += 1
        ids = self._ids[self._cached : end]
        logits = self._memory.run(ids, rows)
        self._count(len(ids))
        return logits

    def _keep_start(self, length: int, rows: int) -> None:
        """Runs the tokens before the last `rows`, and takes a snapshot there if these may be rolled
        back: candidates, or what a draft adds to its own tokens. The first is the prompt's end."""
        round_starts = rows > 1 or self._runs == 1
        if self._snapshots and not round_starts:
            return
        if ids := self._ids[self._cached : length]:
            self._memory.run(ids, 0)
            self._count(len(ids))
        if length and all(each.length < length for each in self._snapshots):
            if len(self._snapshots) == MOST_SNAPSHOTS:
                del self._snapshots[1]
            self._snapshots.append(Snapshot(length, self._memory.keep()))

    def _count(self, tokens: int) -> None:
        """So many tokens more are in the memory."""
        count = tokens + self._states()
        self._table.grow(count)
        self._table.fill(count)
        self._cached += tokens

    def _go_back(self, length: int) -> None:
        """To the first `length` tokens or less."""
        if self._cached <= length:
            return
        cached = self._nearest(length)
        if not cached:
            self.drop_cache()
            return
        self._memory = self._at(cached)
        self._snapshots = [each for each in self._snapshots if each.length <= cached]
        self._table.truncate(self._table.tokens - self._cached + cached)
        self._cached = cached

    def _at(self, length: int) -> Memory:
        """A memory of the first `length` tokens, to which it can go back."""
        kept = next((each.kept for each in self._snapshots if each.length == length), None)
        return self._memory.back_to(self._memory.keep() if kept is None else kept, length)


class ReplayContexts:
    """Makes contexts, and runs parts of them."""

    rollback = Rollback.REPLAY
    most_parts = 1

    def __init__(self, shared: ReplayMemory) -> None:
        self._shared = shared

    @property
    def blocks(self) -> BlockPool:
        return self._shared.blocks

    @property
    def longest(self) -> int:
        blocks, states = self._shared.blocks, self._shared.state_blocks
        return blocks.tokens - states * blocks.block_tokens

    def new_sequence(self) -> ReplaySequence:
        return ReplaySequence(self._shared)

    def run(self, parts: Sequence[Part]) -> list[TensorLogits]:
        """As `uag_common.model.Model.run`; more parts than one run one after another."""
        sequences = [_sequence(part) for part in parts]
        rows = [sequence.prepare(part) for sequence, part in zip(sequences, parts, strict=True)]
        try:
            return [
                TensorLogits.of(sequence.run(part.tokens, count))
                for sequence, part, count in zip(sequences, parts, rows, strict=True)
            ]
        except BaseException:
            # Some layers may hold the new tokens and some not.
            for sequence in sequences:
                sequence.drop_cache()
            raise


def _sequence(part: Part) -> ReplaySequence:
    if not isinstance(part.sequence, ReplaySequence):
        raise TypeError(f"{type(part.sequence).__name__} is no context of this model")
    return part.sequence
