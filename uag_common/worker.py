"""The one thread that runs a model, so that the event loop never waits for a forward pass.

Knows nothing of models: it runs plain functions, one at a time, in the order they come.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


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


class Worker:
    """Steps of all sessions queue here. A step whose caller went away before it began is dropped;
    one that runs is finished, since a forward pass cannot be stopped."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, step: Callable[[], T]) -> Timed[T]:
        queued = time.perf_counter()

        def timed() -> Timed[T]:
            began = time.perf_counter()
            value = step()
            return Timed(value, StepTime(began - queued, time.perf_counter() - began))

        return await asyncio.get_running_loop().run_in_executor(self._executor, timed)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
