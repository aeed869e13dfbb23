"""Runs the answers of one request side by side. Knows no round and no gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Ended:
    """One of the streams is over, by this error if there is one."""

    error: Exception | None = None


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """The items of all streams as they come, those of one stream in their order. Raises the first
    error of any; whatever happens, all streams are closed when it ends. A stream is never more
    than two items ahead of the reader."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for item in only:
                yield item
        return
    queue: asyncio.Queue[T | _Ended] = asyncio.Queue(maxsize=1)
    tasks = [asyncio.create_task(_forward(stream, queue)) for stream in streams]
    running = len(tasks)
    try:
        while running:
            got = await queue.get()
            if not isinstance(got, _Ended):
                yield got
                continue
            if got.error is not None:
                raise got.error
            running -= 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _forward(stream: AsyncGenerator[T, None], queue: asyncio.Queue[T | _Ended]) -> None:
    ended = _Ended()
    try:
        async with aclosing(stream) as items:
            async for item in items:
                await queue.put(item)
    except Exception as error:
        ended = _Ended(error)
    await queue.put(ended)
