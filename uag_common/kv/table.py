"""Where one cache lies: its extents of blocks, and how many tokens it holds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from uag_common.kv.pool import BlockPool, Extent, NoBlocksError


class Run(NamedTuple):
    """`length` slots side by side, from slot `first` on. A slot has room for one token."""

    first: int
    length: int


class Copy(NamedTuple):
    """What the slots from `source` on hold is to be copied into those from `target` on."""

    source: int
    target: int
    length: int


class BlockTable:
    """The blocks of one cache. The caller writes what the slots hold, and sees to the copies before
    it writes anything else."""

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._extents: list[Extent] = []
        self._blocks = 0
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """How many are cached."""
        return self._tokens

    @property
    def bytes(self) -> int:
        """What its blocks take in memory, shared ones included."""
        return self._blocks * self._pool.block_bytes

    def needed(self, tokens: int) -> int:
        """How many free blocks it takes to cache so many tokens more."""
        whole = -(-(self._tokens + tokens) // self._pool.block_tokens)
        return max(0, whole - self._blocks) + (tokens > 0 and self._must_copy())

    def grow(self, tokens: int) -> tuple[Copy, ...]:
        """Makes room for so many tokens more, which are not cached before `fill`. Raises
        NoBlocksError; nothing has changed then."""
        if (needed := self.needed(tokens)) > self._pool.free:
            raise NoBlocksError(f"{needed} blocks are needed, {self._pool.free} are free")
        copies = self._own_last() if tokens and self._must_copy() else ()
        for extent in self._pool.take(self.needed(tokens), self._last()):
            self._append(extent)
        return copies

    def fill(self, tokens: int) -> None:
        """So many tokens more are cached, for which there is room."""
        self._tokens += tokens

    def truncate(self, tokens: int) -> None:
        """Holds the first `tokens` at most, and gives back what that leaves free."""
        self._tokens = min(self._tokens, tokens)
        kept = -(-self._tokens // self._pool.block_tokens)
        while self._blocks > kept:
            self._pop(min(self._blocks - kept, self._extents[-1].length))

    def fork(self, tokens: int) -> tuple[BlockTable, tuple[Copy, ...]]:
        """A table of its own with the first `tokens` of the cached ones, or with some less where no
        block is free for the last of them."""
        other, size = BlockTable(self._pool), self._pool.block_tokens
        tokens = min(tokens, self._tokens)
        for extent in self._first_blocks(tokens // size):
            self._pool.share(extent)
            other._append(extent)
        other._tokens = tokens - tokens % size
        if not tokens % size or not self._pool.free:
            return other, ()
        source = self._slot(other._tokens)
        (extent,) = self._pool.take(1, other._last())
        other._append(extent)
        other._tokens = tokens
        return other, (Copy(source, extent.first * size, tokens % size),)

    def runs(self, tokens: int) -> tuple[Run, ...]:
        """The slots of the first `tokens` tokens, in their order; for all of these there is
        room."""
        size, runs = self._pool.block_tokens, []
        for extent in self._extents:
            if not tokens:
                break
            runs.append(Run(extent.first * size, min(tokens, extent.length * size)))
            tokens -= runs[-1].length
        return tuple(runs)

    def _slot(self, token: int) -> int:
        """Where the token of that index is."""
        size = self._pool.block_tokens
        for extent in self._extents:
            if token < extent.length * size:
                return extent.first * size + token
            token -= extent.length * size
        raise IndexError(token)

    def _must_copy(self) -> bool:
        """Whether what comes next would be written into a block that others hold too."""
        last = self._last()
        return last is not None and self._begun() and self._pool.shared(last)

    def _begun(self) -> bool:
        """Whether the last block is neither empty nor full."""
        return self._tokens > (self._blocks - 1) * self._pool.block_tokens and bool(
            self._tokens % self._pool.block_tokens
        )

    def _own_last(self) -> tuple[Copy, ...]:
        size, last = self._pool.block_tokens, self._extents[-1]
        block = last.first + last.length - 1
        # Held until its copy is there: it has other holders.
        self._pop(1)
        (extent,) = self._pool.take(1, self._last())
        self._append(extent)
        return (Copy(block * size, extent.first * size, self._tokens % size),)

    def _last(self) -> int | None:
        return sum(self._extents[-1]) - 1 if self._extents else None

    def _append(self, extent: Extent) -> None:
        last = self._extents[-1] if self._extents else None
        if last is not None and last.first + last.length == extent.first:
            self._extents[-1] = Extent(last.first, last.length + extent.length)
        else:
            self._extents.append(extent)
        self._blocks += extent.length

    def _pop(self, count: int) -> None:
        """Gives back the last `count` blocks, which lie in the last extent."""
        first, held = self._extents.pop()
        if held > count:
            self._extents.append(Extent(first, held - count))
        self._pool.give_back(Extent(first + held - count, count))
        self._blocks -= count

    def _first_blocks(self, count: int) -> Iterator[Extent]:
        for extent in self._extents:
            if not count:
                return
            part = Extent(extent.first, min(count, extent.length))
            yield part
            count -= part.length
