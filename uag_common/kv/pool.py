"""The blocks that caches are made of: which are free, and how many hold each of the others.

Knows numbers alone: where a block lies in memory is the engine's. A block has room for a fixed
number of tokens in all layers. Blocks side by side are an *extent*: a cache that lies in one can be
read where it is.
"""

from __future__ import annotations

from typing import NamedTuple

from uag_common.errors import InternalError

GROWTH_BLOCKS = 32
"""Left free behind a cache where there is room, so that it can grow where it lies."""
_FREE = b"\0"


class NoBlocksError(InternalError):
    """Fewer blocks are free than are asked for; nothing was taken."""


class Extent(NamedTuple):
    """`length` blocks side by side, from block `first` on."""

    first: int
    length: int


class BlockPool:
    """A fixed number of blocks of `block_tokens` tokens each. Any thread may read the figures, one
    alone may take and give."""

    def __init__(self, total: int, block_tokens: int, block_bytes: int = 0) -> None:
        self.total = total
        self.block_tokens = block_tokens
        self.block_bytes = block_bytes
        self._holders = [0] * total
        # For a search at C speed, one byte a block.
        self._used = bytearray(total)
        self.free = total

    @property
    def used(self) -> int:
        return self.total - self.free

    @property
    def tokens(self) -> int:
        """As many as there is room for."""
        return self.total * self.block_tokens

    def take(self, count: int, after: int | None = None) -> tuple[Extent, ...]:
        """Blocks that were free, each with one holder; the first of them is the one behind block
        `after` if that is free. Raises NoBlocksError."""
        if count > self.free:
            raise NoBlocksError(
                f"{count} blocks are asked for, {self.free} of {self.total} are free"
            )
        taken: list[Extent] = []
        while count:
            extent = self._grow(after, count) or self._place(count)
            self._hold(extent)
            taken.append(extent)
            count -= extent.length
            after = extent.first + extent.length - 1
        return tuple(taken)

    def _grow(self, after: int | None, count: int) -> Extent | None:
        """The free blocks right behind one, `count` at most."""
        if after is None:
            return None
        first = after + 1
        found = self._free_from(first, count)
        return Extent(first, found) if found else None

    def _place(self, count: int) -> Extent:
        """A new place: with room to grow for it and for the one before it, or without, or for a
        part of it."""
        for wanted in (count + 2 * GROWTH_BLOCKS, count):
            first = self._used.find(_FREE * wanted)
            if first >= 0:
                room = GROWTH_BLOCKS if first and wanted > count else 0
                return Extent(first + room, count)
        first = self._used.index(_FREE)
        return Extent(first, self._free_from(first, count))

    def _free_from(self, first: int, most: int) -> int:
        """How many blocks are free side by side from `first` on, `most` at most."""
        part = self._used[first : first + most]
        end = part.find(b"\1")
        return len(part) if end < 0 else end

    def _hold(self, extent: Extent) -> None:
        first, count = extent
        self._used[first : first + count] = b"\1" * count
        self._holders[first : first + count] = [1] * count
        self.free -= count

    def share(self, extent: Extent) -> None:
        """Each of the blocks, which are held, has one holder more."""
        for block in range(extent.first, extent.first + extent.length):
            self._holders[block] += 1

    def give_back(self, extent: Extent) -> None:
        """Each of the blocks has one holder less, and is free if that was the last."""
        for block in range(extent.first, extent.first + extent.length):
            self._holders[block] -= 1
            if not self._holders[block]:
                self._used[block] = 0
                self.free += 1

    def shared(self, block: int) -> bool:
        """Whether it has more than one holder, so that nobody may write into it."""
        return self._holders[block] > 1
