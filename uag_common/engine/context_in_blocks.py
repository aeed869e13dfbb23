"""The ids of a context, how many of them are cached, and when what is cached is of no use.

What a cache holds, and where, is for those who inherit.
"""

from __future__ import annotations

from collections.abc import Sequence

from uag_common.engine.rope import RopeRegimes
from uag_common.kv.pool import BlockPool
from uag_common.kv.table import BlockTable


class ContextInBlocks:
    """What `uag_common.model.TokenSequence` asks of a context whose cache lies, or is counted, in
    blocks, and can be cut anywhere."""

    def __init__(self, blocks: BlockPool, regimes: RopeRegimes) -> None:
        self._regimes = regimes
        self._ids: list[int] = []
        self._table = BlockTable(blocks)
        self._long = False
        """Of which regime the cache is, if there is any."""

    @property
    def ids(self) -> Sequence[int]:
        return self._ids

    @property
    def cached(self) -> int:
        return self._table.tokens

    @property
    def cache_bytes(self) -> int:
        return self._table.bytes

    @property
    def long(self) -> bool:
        """The regime of the whole context."""
        return self._regimes.long(len(self._ids))

    def extend(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    def reach(self, length: int) -> int:
        return self._regimes.reach(length)

    def pending(self, rows: int) -> int:
        length = len(self._ids)
        if not 1 <= rows <= length:
            raise ValueError(f"{rows} rows asked of a context of {length} tokens")
        if self.reach(length - rows + 1) < length:
            raise ValueError(f"the last {rows} of {length} tokens are not of one regime")
        return length - self._usable(rows)

    def _usable(self, rows: int) -> int:
        """How much of the cache is of use for the last rows."""
        if self._long != self.long:
            return 0
        return min(self.cached, len(self._ids) - rows)

    def blocks_for(self, tokens: int) -> int:
        return self._table.needed(tokens)
