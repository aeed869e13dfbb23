"""The thread of a model: one thing at a time, the urgent first, nothing that nobody wants."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from uag_common.worker import Worker


@asynccontextmanager
async def busy(worker: Worker) -> AsyncIterator[None]:
    """The worker runs something all the while."""
    begun, release = threading.Event(), threading.Event()

    def step() -> bool:
        begun.set()
        return release.wait(10)

    running = asyncio.ensure_future(worker.run(step))
    await asyncio.to_thread(begun.wait, 10)
    try:
        yield
    finally:
        release.set()
        assert await running


async def test_all_run_one_at_a_time_off_the_event_loop() -> None:
    worker, seen = Worker("test"), []

    def step(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    results = await asyncio.gather(*(worker.run(partial(step, n)) for n in range(5)))
    assert results == list(range(5))
    assert [number for number, _ in seen] == list(range(5))
    threads = {thread for _, thread in seen}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_what_is_raised_reaches_its_caller_alone() -> None:
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)
    assert await worker.run(lambda: 7) == 7


async def test_what_nobody_waits_for_any_more_is_never_run() -> None:
    worker, ran = Worker("test"), list[int]()
    async with busy(worker):
        waiting = asyncio.ensure_future(worker.run(partial(ran.append, 1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await worker.run(lambda: None)
    assert ran == []


async def test_nothing_of_what_has_run_is_held() -> None:
    class Prompt:
        pass

    worker, prompt = Worker("test"), Prompt()
    alive = weakref.ref(prompt)
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError):
            await worker.run(partial(lambda _: 1 // 0, prompt))
        await worker.run(lambda: None)
        del prompt
    finally:
        gc.enable()
    assert alive() is None


async def test_how_long_something_runs_is_told() -> None:
    worker = Worker("test")
    assert worker.step_seconds == 0.0
    async with busy(worker):
        await asyncio.sleep(0.3)
        assert worker.step_seconds >= 0.25
    assert await worker.run(lambda: worker.step_seconds) < 0.25
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)
    await worker.run(lambda: time.sleep(0))
    assert worker.step_seconds == 0.0


async def test_what_is_urgent_goes_before_all_that_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker, order = Worker("test"), list[str]()
    async with busy(worker):
        waiting = asyncio.ensure_future(worker.run(partial(order.append, "first")))
        await asyncio.sleep(0)
        worker.post(partial(order.append, "last"), urgent=False)
        worker.post(partial(order.append, "urgent"))
        worker.post(lambda: [].pop())
    await waiting
    await worker.run(lambda: None)
    assert order == ["urgent", "first", "last"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_a_closed_worker_drops_what_waits_and_takes_no_more() -> None:
    worker, ran = Worker("test"), list[int]()
    async with busy(worker):
        waiting = asyncio.ensure_future(worker.run(partial(ran.append, 1)))
        await asyncio.sleep(0)
        worker.post(partial(ran.append, 2))
        worker.close()
        worker.post(partial(ran.append, 3))
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert ran == []
