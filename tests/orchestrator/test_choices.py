"""Several streams as one: nothing lost, nothing left open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from orchestrator.choices import merged


class Counted:
    """Streams that count how many of them are open."""

    def __init__(self) -> None:
        self.open = 0

    async def stream(
        self, name: str, items: int, *, fails: bool = False, ahead: list[int] | None = None
    ) -> AsyncGenerator[str, None]:
        self.open += 1
        try:
            for number in range(items):
                await asyncio.sleep(0)
                if ahead is not None:
                    ahead.append(number)
                yield f"{name}{number}"
            if fails:
                raise ValueError(name)
        finally:
            self.open -= 1


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_each_item_comes_once_and_in_its_streams_order(count: int) -> None:
    counted = Counted()
    streams = [counted.stream(name, 3 + index) for index, name in enumerate("abcde"[:count])]
    items = [item async for item in merged(streams)]
    for index, name in enumerate("abcde"[:count]):
        own = [item for item in items if item.startswith(name)]
        assert own == [f"{name}{number}" for number in range(3 + index)]
    assert counted.open == 0


@pytest.mark.parametrize("count", [1, 3])
async def test_an_error_ends_all(count: int) -> None:
    counted = Counted()
    streams = [counted.stream("a", 2, fails=True)]
    streams += [counted.stream("b", 10_000) for _ in range(count - 1)]
    with pytest.raises(ValueError, match="a"):
        _ = [item async for item in merged(streams)]
    assert counted.open == 0


@pytest.mark.parametrize("count", [1, 3])
async def test_a_reader_that_leaves_closes_all(count: int) -> None:
    counted = Counted()
    async with aclosing(merged([counted.stream("a", 100) for _ in range(count)])) as items:
        await anext(items)
    assert counted.open == 0


async def test_a_slow_reader_holds_the_streams_back() -> None:
    counted, ahead = Counted(), list[int]()
    streams = [counted.stream("a", 100, ahead=ahead), counted.stream("b", 100)]
    async with aclosing(merged(streams)) as items:
        await anext(items)
        await asyncio.sleep(0.02)
        assert len(ahead) <= 4
