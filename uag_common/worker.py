"""The one thread that runs a model, so that the event loop never waits for a forward pass.

Knows nothing of models: it runs plain functions, one at a time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Worker:
    """Functions run in the order in which they came, but for those that are urgent: they go before
    all others."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._urgent: deque[_Call] = deque()
        self._waiting: deque[_Call] = deque()
        self._began: float | None = None
        self._closed = False

    @property
    def step_seconds(self) -> float:
        """How long the running function has been running; 0 if none runs."""
        began = self._began
        return 0.0 if began is None else time.perf_counter() - began

    @property
    def waiting(self) -> bool:
        """Whether anything waits for the running function to end."""
        return bool(self._urgent or self._waiting)

    def next_step(self) -> None:
        """The running function begins another step, by which `step_seconds` counts."""
        self._began = time.perf_counter()

    async def run(self, function: Callable[[], T]) -> T:
        """Runs it and gives what it gave, or raises what it raised. If its caller goes away before
        it began, it is dropped."""
        call = _Call(function)
        self._submit(call, self._waiting)
        try:
            result: T = await asyncio.wrap_future(call.future)
            return result
        finally:
            # Its error knows this frame, and both would live on.
            del call

    def post(self, function: Callable[[], None], *, urgent: bool = True) -> None:
        """Runs it, and nobody waits for it. What is urgent, as to free memory, must be short.
        Nothing is run once the worker is closed."""
        call = _Call(function)
        call.future.add_done_callback(_log_failure)
        self._submit(call, self._urgent if urgent else self._waiting)

    def _submit(self, call: _Call, queue: deque[_Call]) -> None:
        with self._lock:
            if self._closed:
                call.future.cancel()
                return
            queue.append(call)
            self._executor.submit(self._run_first)

    def _run_first(self) -> None:
        """Once for each submitted call, so that each has its turn."""
        with self._lock:
            call = (self._urgent or self._waiting).popleft()
        if not call.future.set_running_or_notify_cancel():
            return
        self._began = time.perf_counter()
        try:
            result = call.function()
        except BaseException as error:
            self._began = None
            call.future.set_exception(error)
            # The error knows this frame, and both would live on.
            del call
        else:
            self._began = None
            call.future.set_result(result)

    def close(self) -> None:
        """Drops what waits; what runs is finished, and not waited for."""
        with self._lock:
            self._closed = True
            dropped = (*self._urgent, *self._waiting)
        self._executor.shutdown(wait=False, cancel_futures=True)
        for call in dropped:
            call.future.cancel()


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A function, and who waits for what it gives."""

    function: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


def _log_failure(posted: Future[None]) -> None:
    if not posted.cancelled() and (error := posted.exception()) is not None:
        log.error("unexpected failure in a step that nobody waits for", exc_info=error)
