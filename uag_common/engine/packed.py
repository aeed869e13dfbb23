"""Many contexts of a causal language model in one forward pass, each as if it were alone.

Tokens of all contexts lie behind each other in one row; everything but attention is done for the
whole row at once. (Selective batching: Orca, OSDI 2022; caches in blocks: vLLM, arXiv 2309.06180.)
Exact for models whose layers attend to all tokens or to a sliding window of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

import torch

from uag_common.engine.context_in_blocks import ContextInBlocks
from uag_common.engine.logits import LogitsOfPass, TensorLogits
from uag_common.engine.pack import Pack, Segment
from uag_common.engine.rope import RopeRegimes
from uag_common.kv.pool import BlockPool
from uag_common.kv.table import Copy
from uag_common.model import Part, Rollback

MOST_PARTS = 256


class Runner(Protocol):
    """Where packs run."""

    def run(self, pack: Pack) -> torch.Tensor:
        """The logits after the tokens at the pack's rows, [rows, vocabulary]."""


@dataclass(frozen=True, slots=True)
class PackMemory:
    """What the contexts of a model share: blocks, copies that the next pack has to make, and when a
    cache is of no use any more."""

    blocks: BlockPool
    regimes: RopeRegimes
    copies: list[Copy] = field(default_factory=list)


class PackedSequence(ContextInBlocks):
    """`uag_common.model.TokenSequence` with its cache in blocks."""

    def __init__(self, memory: PackMemory) -> None:
        super().__init__(memory.blocks, memory.regimes)
        self._memory = memory

    def truncate(self, length: int) -> None:
        del self._ids[length:]
        self._table.truncate(length)

    def drop_cache(self) -> None:
        self._table.truncate(0)

    def fork(self, length: int) -> PackedSequence:
        other = PackedSequence(self._memory)
        other._ids = self._ids[:length]
        other._long = self._long
        other._table, copies = self._table.fork(length)
        self._memory.copies.extend(copies)
        return other

    def segment(self, part: Part) -> Segment:
        """Makes room for the part's tokens. Raises NoBlocksError."""
        self._table.truncate(self._usable(part.rows))
        self._long = self.long
        cached = self._table.tokens
        self._memory.copies.extend(self._table.grow(part.tokens))
        end = cached + part.tokens
        return Segment(tuple(self._ids[cached:end]), cached, self._table.runs(end))

    def ran(self, tokens: int) -> None:
        """So many tokens more are in the cache."""
        self._table.fill(tokens)


@dataclass(frozen=True, slots=True)
class _Share:
    """A part as it lies in a pass: its segment, and how many rows of logits it gets."""

    part: Part
    sequence: PackedSequence
    segment: Segment
    rows: int

    @classmethod
    def of(cls, part: Part) -> _Share:
        sequence = part.sequence
        if not isinstance(sequence, PackedSequence):
            raise TypeError(f"{type(sequence).__name__} is no context of this model")
        whole = part.tokens == sequence.pending(part.rows)
        return cls(part, sequence, sequence.segment(part), part.rows if whole else 0)

    def rows_until(self, end: int) -> range:
        """The rows that it gets logits of, where its tokens end."""
        return range(end - self.rows, end)

    def tokens(self) -> Iterator[tuple[Segment, bool]]:
        """Its tokens one by one, and whether the logits after each are wanted."""
        count = len(self.segment.ids)
        for index in range(count):
            yield self.segment.token(index), index >= count - self.rows


class PackedContexts:
    """Makes contexts, and runs parts of them together.

    `fixed_rows`: every pass has so many tokens, padded if need be, and each token attends by
    itself. Matrix products of one shape treat all rows alike, so the numbers of a context depend
    neither on what shares its passes nor on how its tokens are spread over them. None: as few
    passes as can be.
    """

    rollback = Rollback.TRUNCATE
    most_parts = MOST_PARTS

    def __init__(self, runner: Runner, memory: PackMemory, fixed_rows: int | None = None) -> None:
        self._runner = runner
        self._memory = memory
        self._fixed_rows = fixed_rows

    @property
    def blocks(self) -> BlockPool:
        return self._memory.blocks

    @property
    def longest(self) -> int:
        return self._memory.blocks.tokens

    def new_sequence(self) -> PackedSequence:
        return PackedSequence(self._memory)

    def run(self, parts: Sequence[Part]) -> list[TensorLogits]:
        """As `uag_common.model.Model.run`."""
        shares = [_Share.of(part) for part in parts]
        # Stable, so that each regime's shares lie in the order of the parts.
        ordered = sorted(shares, key=lambda share: share.sequence.long)
        logits = LogitsOfPass(torch.cat([self._logits(plan) for plan in self._plans(ordered)]))
        for share in shares:
            share.sequence.ran(share.part.tokens)
        ends = accumulate(share.rows for share in ordered)
        firsts = {id(share): end - share.rows for share, end in zip(ordered, ends, strict=True)}
        return [logits.share(firsts[id(share)], share.rows) for share in shares]

    def _logits(self, plan: _PackPlan) -> torch.Tensor:
        logits = self._runner.run(plan.pack(self._take_copies()))
        return logits if plan.chosen is None else logits[list(plan.chosen)]

    def _take_copies(self) -> tuple[Copy, ...]:
        copies = tuple(self._memory.copies)
        self._memory.copies.clear()
        return copies

    def _plans(self, ordered: Sequence[_Share]) -> Iterator[_PackPlan]:
        boundary = self._memory.regimes.boundary
        for long in (False, True):
            shares = [share for share in ordered if share.sequence.long is long]
            position = boundary if long else 0
            if shares and self._fixed_rows is None:
                yield _whole(shares, position)
            elif shares and self._fixed_rows is not None:
                yield from _of_fixed_size(shares, self._fixed_rows, position)


@dataclass(frozen=True, slots=True)
class _PackPlan:
    """A pack before its copies are known. `chosen`: which of its rows are wanted, None: all."""

    segments: tuple[Segment, ...]
    rows: tuple[int, ...]
    padding: int
    position: int
    chosen: tuple[int, ...] | None = None

    def pack(self, copies: tuple[Copy, ...]) -> Pack:
        return Pack(self.segments, self.rows, copies, self.padding, self.position)


def _whole(shares: Sequence[_Share], position: int) -> _PackPlan:
    """All in one pass. The model takes the regime from the largest position that it sees, so there
    must be one that reaches `position`."""
    ends = accumulate(len(share.segment.ids) for share in shares)
    rows = [row for share, end in zip(shares, ends, strict=True) for row in share.rows_until(end)]
    segments = tuple(share.segment for share in shares)
    lacks = all(segment.length <= position for segment in segments)
    return _PackPlan(segments, tuple(rows), int(lacks and position > 0), position)


def _of_fixed_size(shares: Sequence[_Share], size: int, position: int) -> Iterator[_PackPlan]:
    """Token by token, and `size` of them in a pass; with a place for one that reaches `position`
    where there is such a one."""
    tokens = [token for share in shares for token in share.tokens()]
    room = size - 1 if position else size
    for start in range(0, len(tokens), room):
        some = tokens[start : start + room]
        yield _PackPlan(
            tuple(segment for segment, _ in some),
            tuple(range(size)),
            size - len(some),
            position,
            tuple(row for row, (_, wanted) in enumerate(some) if wanted),
        )
