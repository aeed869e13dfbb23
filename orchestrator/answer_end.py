"""When an answer must end whatever it says: its time is over, or the server ends. No grpc."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.events import FinishReason


class AnswerOverError(Exception):
    """Raised out of a wait: what is committed by now is the answer."""

    def __init__(self, reason: FinishReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class AnswerEnd:
    """Of one answer, whose waits it bounds. Made within a running event loop."""

    def __init__(self, time_limit_seconds: float | None = None) -> None:
        loop = asyncio.get_running_loop()
        self._at = None if time_limit_seconds is None else loop.time() + time_limit_seconds
        self._cancelled = False
        self._waits: set[asyncio.Timeout] = set()

    def cancel(self) -> None:
        """Ends the answer now, if it has not ended."""
        self._cancelled = True
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def bounding(self) -> AsyncIterator[None]:
        """Around a wait. Raises AnswerOverError when the answer must end."""
        if self._cancelled:
            raise AnswerOverError(FinishReason.CANCELLED)
        wait = asyncio.timeout_at(self._at)
        try:
            async with wait:
                self._waits.add(wait)
                yield
        except TimeoutError:
            if not wait.expired():
                raise
            over = FinishReason.CANCELLED if self._cancelled else FinishReason.TIME_LIMIT
            raise AnswerOverError(over) from None
        finally:
            self._waits.discard(wait)
