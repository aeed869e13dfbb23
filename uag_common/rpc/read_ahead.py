"""Reads a stream of messages one ahead, so that it is known when the next one is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from uag_common.abandon import abandon

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """To be closed in any case."""

    def __init__(self, messages: AsyncIterator[T]) -> None:
        self._messages = messages
        self._coming = self._read()

    async def next(self) -> tuple[T, Callable[[], bool]] | None:
        """The next message, and what tells (from any thread) whether the one after it is there or
        the stream has ended; None at the end of the stream."""
        message = await self._coming
        if message is None:
            return None
        self._coming = self._read()
        return message, self._coming.done

    async def aclose(self) -> None:
        """Reads no further; then the stream may be closed, which it cannot be while it is read."""
        abandon(self._coming)
        await asyncio.wait((self._coming,))

    def _read(self) -> asyncio.Task[T | None]:
        return asyncio.ensure_future(self._one())

    async def _one(self) -> T | None:
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            return None
