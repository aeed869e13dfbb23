"""The calls that a server has open: how many there may be, and how it ends without cutting any off.
Knows no service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from uag_common.errors import OverloadedError, PeerUnavailableError

MAX_OPEN_CALLS = 1024
"""A call may hold a message of the greatest size; more calls than this are refused unread."""

RETRY_SECONDS = 1.0

_SHUTTING_DOWN = "the service is shutting down; ask another replica"


class OpenCalls:
    """Counts the calls of our own services. Those of health and reflection do not count: a watcher
    of health never ends by itself, and must not hold up the end of a process."""

    def __init__(self, most: int = MAX_OPEN_CALLS) -> None:
        self._most = most
        self._count = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._waits: set[asyncio.Timeout] = set()
        self.ending = asyncio.Event()
        """Set when the grace of a server that ends is over: running answers then say their last
        word and end by themselves, before they are cut."""

    @asynccontextmanager
    async def waiting(self, seconds: float | None) -> AsyncIterator[None]:
        """Around a wait for a message of a client. Raises TimeoutError when the time is over, and
        PeerUnavailableError when the server's grace is."""
        if self.ending.is_set():
            raise PeerUnavailableError(_SHUTTING_DOWN)
        wait = asyncio.timeout(seconds)
        try:
            async with wait:
                self._waits.add(wait)
                yield
        except TimeoutError:
            if not self.ending.is_set():
                raise
            raise PeerUnavailableError(_SHUTTING_DOWN) from None
        finally:
            self._waits.discard(wait)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call from its start to its end. Raises PeerUnavailableError once calls are closed,
        OverloadedError if there are too many."""
        if self._closed:
            raise PeerUnavailableError(_SHUTTING_DOWN)
        if self._count >= self._most:
            raise OverloadedError(f"the service has {self._most} calls open", RETRY_SECONDS)
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

    def end(self) -> None:
        """The grace is over: ends the waits for clients, and tells running answers."""
        self.ending.set()
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(asyncio.get_running_loop().time())

    async def idle(self, grace_seconds: float) -> None:
        """Until no call is open, or the grace is over."""
        try:
            async with asyncio.timeout(grace_seconds):
                await self._idle.wait()
        except TimeoutError:
            return
