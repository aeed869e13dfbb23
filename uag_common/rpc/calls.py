"""The calls that a server has open: how it ends without cutting any off. Knows no service."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from uag_common.errors import PeerUnavailableError


class OpenCalls:
    """Counts the calls of our own services. Those of health and reflection do not count: a watcher
    of health never ends by itself, and must not hold up the end of a process."""

    def __init__(self) -> None:
        self._count = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call from its start to its end. Raises PeerUnavailableError once calls are closed."""
        if self._closed:
            raise PeerUnavailableError("the service is shutting down; ask another replica")
        self._count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    def close(self) -> None:
        """From now on new calls are refused."""
        self._closed = True

    async def idle(self, grace_seconds: float) -> None:
        """Until no call is open, or the grace is over."""
        try:
            async with asyncio.timeout(grace_seconds):
                await self._idle.wait()
        except TimeoutError:
            return
