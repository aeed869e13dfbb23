"""The sessions that a service has open: so many and no more, and none that nobody uses.

Knows neither gRPC nor models.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from uag_common.errors import DeadlineExceededError, OverloadedError

RETRY_SECONDS = 1.0
"""When a refused caller may try again: an answer of usual length is over in some seconds, and then
its session is free."""


class IdleTimer:
    """Runs while a session waits for its caller: for the next command, or until the last answer is
    taken."""

    def __init__(self, timeout: asyncio.Timeout, seconds: float) -> None:
        self._timeout = timeout
        self._seconds = seconds

    @contextmanager
    def working(self) -> Iterator[None]:
        """The session works at a command; the timer starts anew when it is done."""
        self._timeout.reschedule(None)
        yield
        self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)


class Admission:
    """Opens sessions, and counts them."""

    def __init__(
        self,
        max_sessions: int,
        idle_seconds: float,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """`refused` is called for each session that there is no room for."""
        self._refused = refused
        self.max_sessions = max_sessions
        self._idle_seconds = idle_seconds
        self._open = 0

    @property
    def open_sessions(self) -> int:
        return self._open

    @asynccontextmanager
    async def session(self) -> AsyncIterator[IdleTimer]:
        """A session from its start to its end. Raises OverloadedError if there are too many, and
        DeadlineExceededError where the timer has run out."""
        if self._open >= self.max_sessions:
            if self._refused is not None:
                self._refused()
            raise OverloadedError(
                f"{self._open} sessions are open, as many as there may be; try again later",
                RETRY_SECONDS,
            )
        self._open += 1
        try:
            async with asyncio.timeout(self._idle_seconds) as timeout:
                yield IdleTimer(timeout, self._idle_seconds)
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise DeadlineExceededError(
                f"no command came for {self._idle_seconds:g} s; open a new session"
            ) from error
        finally:
            self._open -= 1
