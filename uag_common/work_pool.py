"""Threads for work that neither an event loop nor a model's thread may wait for.

Knows no kind of work: each kind has a pool of its own, so that one cannot hold up another.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from uag_common.errors import OverloadedError

P = ParamSpec("P")
T = TypeVar("T")

RETRY_SECONDS = 1.0


class WorkPool:
    """So many `threads`, and as many as `most_waiting` callers that wait for one. `name` says in
    the plural what they work at."""

    def __init__(self, name: str, threads: int, most_waiting: int) -> None:
        self._name = name
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name.replace(" ", "-"))
        self._places = threading.Semaphore(threads + most_waiting)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` gives or raises. OverloadedError if too many wait already. Work whose caller
        went away before it began is dropped; what runs is finished."""
        if not self._places.acquire(blocking=False):
            raise OverloadedError(
                f"too many {self._name} are being worked at; try again later", RETRY_SECONDS
            )
        future = self._executor.submit(work, *args, **kwargs)
        future.add_done_callback(self._leave)
        try:
            return await asyncio.wrap_future(future)
        finally:
            # Its error knows this frame, and both would live on with all that the work was given.
            del future

    def close(self) -> None:
        """Drops what waits; what runs is finished, and not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _leave(self, _: Future[T]) -> None:
        self._places.release()
