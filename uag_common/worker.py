"""The one thread that runs a model, so that the event loop never waits for a forward pass.

Knows nothing of models: it runs plain functions, one at a time, the most urgent first.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds that a command waited for the model, and seconds that the model ran."""

    queue_seconds: float = 0.0
    forward_seconds: float = 0.0

    def __add__(self, other: StepTime) -> StepTime:
        return StepTime(
            self.queue_seconds + other.queue_seconds, self.forward_seconds + other.forward_seconds
        )


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """What a step gave, and the time it took."""

    value: T
    time: StepTime


class StepObserver(Protocol):
    """Is told of each step, in the task that waited for it; times are those of
    `time.perf_counter`."""

    def stepped(self, command: str, queued: float, began: float, ended: float) -> None:
        """It ran, whatever came of it."""

    def dropped(self, command: str, queued: float) -> None:
        """Its caller went away before it began."""


class UnseenSteps:
    """Tells nobody."""

    def stepped(self, command: str, queued: float, began: float, ended: float) -> None: ...

    def dropped(self, command: str, queued: float) -> None: ...


@dataclass(frozen=True, slots=True, order=True)
class _Waiting:
    """Lower goes first; of equals the one that came first."""

    due: float
    number: int
    step: Callable[[], Any] = field(compare=False)
    future: Future[Any] = field(compare=False)


class _Clock:
    """When a step began and ended; None: it has not."""

    def __init__(self) -> None:
        self.queued = time.perf_counter()
        self.began: float | None = None
        self.ended: float | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        self.began = time.perf_counter()
        try:
            yield
        finally:
            self.ended = time.perf_counter()

    def tell(self, observer: StepObserver, command: str) -> None:
        if self.began is None:
            observer.dropped(command, self.queued)
        elif self.ended is not None:
            observer.stepped(command, self.queued, self.began, self.ended)

    @property
    def time(self) -> StepTime:
        if self.began is None or self.ended is None:
            raise ValueError("the step has not ended")
        return StepTime(self.began - self.queued, self.ended - self.began)


class Worker:
    """Steps of all sessions queue here, a step with priority p as if it had come p seconds earlier:
    waiting makes up for a lower priority, so none waits for ever. A step whose caller went away
    before it began is dropped; one that runs is finished, since a forward pass cannot be stopped.
    """

    def __init__(self, name: str, observer: StepObserver | None = None) -> None:
        self._observer = observer or UnseenSteps()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._numbers = count()
        self._waiting: list[_Waiting] = []
        self._running = False
        self._began = 0.0
        self._closed = False

    @property
    def pending(self) -> int:
        """Steps that wait or run."""
        with self._lock:
            return len(self._waiting) + self._running

    @property
    def step_seconds(self) -> float:
        """How long the running step has been running; 0 if none runs."""
        with self._lock:
            return time.perf_counter() - self._began if self._running else 0.0

    async def run(
        self, step: Callable[[], T], priority: float = 0.0, command: str | None = None
    ) -> Timed[T]:
        """Runs `step` and gives what it gave, or raises what it raised. `command` is what the step
        belongs to; what belongs to none is not shown to the observer."""
        clock = _Clock()

        def timed() -> T:
            with clock.running():
                return step()

        future: Future[T] = Future()
        waiting = _Waiting(clock.queued - priority, next(self._numbers), timed, future)
        self._submit(waiting)
        try:
            value = await asyncio.wrap_future(future)
            return Timed(value, clock.time)
        finally:
            self._forget(waiting)
            # Its error knows this frame, and both would live on.
            del future, waiting
            if command is not None:
                clock.tell(self._observer, command)

    def post(self, step: Callable[[], None]) -> None:
        """Runs `step` before all that waits, and nobody waits for it: for what frees memory. It
        must be short. Nothing is run once the worker is closed."""
        future: Future[None] = Future()
        future.add_done_callback(_log_failure)
        self._submit(_Waiting(-math.inf, next(self._numbers), step, future))

    def _submit(self, waiting: _Waiting) -> None:
        with self._lock:
            if self._closed:
                waiting.future.cancel()
                return
            heapq.heappush(self._waiting, waiting)
            self._executor.submit(self._run_first)

    def _run_first(self) -> None:
        """Once for each submitted step, so that each that was not dropped has its turn."""
        with self._lock:
            if not self._waiting:
                return
            first = heapq.heappop(self._waiting)
            if not first.future.set_running_or_notify_cancel():
                return
            self._running, self._began = True, time.perf_counter()
        try:
            value = first.step()
        except BaseException as error:
            self._running = False
            first.future.set_exception(error)
            # The error knows this frame, and would live on in it.
            del first
        else:
            self._running = False
            first.future.set_result(value)

    def _forget(self, waiting: _Waiting) -> None:
        """If its caller is gone, a step must not hold its prompt until its turn comes."""
        with self._lock:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                heapq.heapify(self._waiting)

    def close(self) -> None:
        """Drops what waits; what runs is finished, and not waited for."""
        with self._lock:
            self._closed = True
            dropped = tuple(self._waiting)
        self._executor.shutdown(wait=False, cancel_futures=True)
        for waiting in dropped:
            waiting.future.cancel()


def _log_failure(posted: Future[None]) -> None:
    if not posted.cancelled() and (error := posted.exception()) is not None:
        log.error("unexpected failure in a step that nobody waits for", exc_info=error)
