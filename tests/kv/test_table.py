"""Tables of blocks against a plain memory: what is cached is read back, and no block is lost."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from uag_common.kv.pool import GROWTH_BLOCKS, BlockPool, Extent, NoBlocksError
from uag_common.kv.table import BlockTable, Copy

SIZE = 4


@dataclass
class Cache:
    """A table, and what its slots ought to hold."""

    table: BlockTable
    tokens: list[int] = field(default_factory=list)


class Memory:
    """Slots that hold what was written last."""

    def __init__(self, pool: BlockPool) -> None:
        self.slots = [-1] * pool.tokens

    def copy(self, copies: tuple[Copy, ...]) -> None:
        for source, target, length in copies:
            self.slots[target : target + length] = self.slots[source : source + length]

    def write(self, cache: Cache, tokens: list[int]) -> None:
        self.copy(cache.table.grow(len(tokens)))
        places = self._places(cache, len(cache.tokens) + len(tokens))
        for place, token in zip(places[len(cache.tokens) :], tokens, strict=True):
            self.slots[place] = token
        cache.table.fill(len(tokens))
        cache.tokens += tokens

    def read(self, cache: Cache) -> list[int]:
        return [self.slots[place] for place in self._places(cache, cache.table.tokens)]

    @staticmethod
    def _places(cache: Cache, tokens: int) -> list[int]:
        runs = cache.table.runs(tokens)
        return [slot for first, length in runs for slot in range(first, first + length)]


@pytest.mark.parametrize("seed", range(40))
def test_any_walk_reads_back_what_was_written(seed: int) -> None:
    dice = random.Random(seed)
    pool = BlockPool(dice.choice([12, 40, 200]), SIZE)
    memory, caches = Memory(pool), [Cache(BlockTable(pool))]
    for token in range(300):
        cache = dice.choice(caches)
        match dice.choice(["write", "write", "truncate", "fork", "drop", "new"]):
            case "write":
                new = [token] * dice.randint(1, 11)
                needed, free = cache.table.needed(len(new)), pool.free
                if needed > free:
                    with pytest.raises(NoBlocksError):
                        cache.table.grow(len(new))
                    assert pool.free == free
                else:
                    memory.write(cache, new)
            case "truncate":
                length = dice.randint(0, len(cache.tokens))
                cache.table.truncate(length)
                del cache.tokens[length:]
            case "fork":
                wanted = dice.randint(0, len(cache.tokens))
                table, copies = cache.table.fork(wanted)
                memory.copy(copies)
                assert wanted - SIZE < table.tokens <= wanted
                caches.append(Cache(table, cache.tokens[: table.tokens]))
            case "drop":
                cache.table.truncate(0)
                cache.tokens.clear()
            case "new":
                caches.append(Cache(BlockTable(pool)))
        for each in caches:
            assert memory.read(each) == each.tokens
        assert 0 <= pool.free <= pool.total
    for cache in caches:
        cache.table.truncate(0)
    assert pool.free == pool.total


def test_a_cache_grows_where_it_lies_while_there_is_room() -> None:
    pool = BlockPool(200, SIZE)
    one, other = BlockTable(pool), BlockTable(pool)
    for _ in range(GROWTH_BLOCKS):
        for table in (one, other):
            table.grow(SIZE)
            table.fill(SIZE)
    assert len(one.runs(one.tokens)) == len(other.runs(other.tokens)) == 1


def test_a_full_memory_is_used_to_its_last_block() -> None:
    pool = BlockPool(5, SIZE)
    tables = [BlockTable(pool) for _ in range(5)]
    for table in tables:
        table.grow(1)
    with pytest.raises(NoBlocksError, match="1 blocks are needed, 0 are free"):
        tables[0].grow(SIZE + 1)
    tables[2].truncate(0)
    tables[0].grow(SIZE + 1)
    assert (pool.free, pool.used, pool.tokens) == (0, 5, 20)


def test_what_is_shared_is_not_written_into() -> None:
    pool = BlockPool(10, SIZE)
    memory, source = Memory(pool), Cache(BlockTable(pool))
    memory.write(source, [1, 2, 3, 4, 5, 6, 7, 8])
    table, copies = source.table.fork(8)
    assert copies == ()
    other = Cache(table, [1, 2, 3, 4, 5, 6, 7, 8])
    assert pool.used == 2
    source.table.truncate(6)
    del source.tokens[6:]
    memory.write(source, [9])
    assert (memory.read(source), memory.read(other)) == ([*range(1, 7), 9], [*range(1, 9)])
    assert pool.used == 3


def test_room_that_was_made_and_not_used_is_used_next() -> None:
    pool = BlockPool(10, SIZE)
    table = BlockTable(pool)
    table.grow(10)
    assert (table.tokens, table.needed(12), table.needed(13)) == (0, 0, 1)
    table.grow(12)
    assert pool.used == 3
    table.truncate(0)
    assert pool.used == 0


def test_a_pool_takes_many_holders() -> None:
    pool = BlockPool(2, SIZE)
    (extent,) = pool.take(1)
    for _ in range(1000):
        pool.share(extent)
    for _ in range(1000):
        pool.give_back(extent)
    assert (pool.free, pool.shared(extent.first)) == (1, False)
    pool.give_back(Extent(extent.first, 1))
    assert pool.free == 2
