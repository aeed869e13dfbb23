from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from uag_common.worker import Timed, Worker

Waiting = asyncio.Future[Timed[object]]


@asynccontextmanager
async def busy(worker: Worker) -> AsyncIterator[asyncio.Future[Timed[bool]]]:
    """The worker runs a step all the while; gives what it will give."""
    begun, release = threading.Event(), threading.Event()

    def step() -> bool:
        begun.set()
        return release.wait(10)

    running = asyncio.ensure_future(worker.run(step))
    await asyncio.to_thread(begun.wait, 10)
    try:
        yield running
    finally:
        release.set()


async def queued(worker: Worker, step: Callable[[], object], priority: float = 0.0) -> Waiting:
    """Waits for the worker by now."""
    pending = worker.pending
    waiting = asyncio.ensure_future(worker.run(step, priority))
    await asyncio.sleep(0)
    assert worker.pending == pending + 1
    return waiting


async def test_steps_run_one_at_a_time_off_the_event_loop() -> None:
    worker, seen = Worker("test"), []

    def step(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    results = await asyncio.gather(*(worker.run(partial(step, n)) for n in range(5)))
    assert [timed.value for timed in results] == list(range(5))
    assert [number for number, _ in seen] == list(range(5))
    threads = {thread for _, thread in seen}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_what_a_step_raises_reaches_its_caller_alone() -> None:
    worker = Worker("test")
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)
    assert (await worker.run(lambda: 7)).value == 7
    assert worker.pending == 0


async def test_a_step_whose_caller_is_gone_is_never_run_and_holds_nothing() -> None:
    class Prompt:
        pass

    worker, prompt = Worker("test"), Prompt()
    ran: list[Prompt] = []
    alive = weakref.ref(prompt)
    async with busy(worker) as first:
        second = await queued(worker, partial(ran.append, prompt))
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert worker.pending == 1
        del second, prompt
        await asyncio.sleep(0)
        assert alive() is None
    await first
    await worker.run(lambda: None)
    assert ran == []
    assert worker.pending == 0


async def test_waiting_and_running_are_told_apart() -> None:
    worker = Worker("test")
    async with busy(worker) as first:
        second = await queued(worker, lambda: None)
        await asyncio.sleep(0.05)
    assert (await second).time.queue_seconds >= 0.04
    assert (await second).time.forward_seconds < (await first).time.forward_seconds


async def test_how_long_a_step_runs_is_of_that_step_alone() -> None:
    worker = Worker("test")
    assert worker.step_seconds == 0.0
    seen: list[float] = []
    async with busy(worker) as first:
        second = await queued(worker, lambda: seen.append(worker.step_seconds))
        await asyncio.sleep(0.3)
        first_seconds = worker.step_seconds
        assert first_seconds >= 0.25
    await first
    await second
    assert 0.0 <= seen[0] < first_seconds
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)
    assert worker.step_seconds == 0.0


async def test_the_greater_priority_goes_first_then_the_longer_wait() -> None:
    worker = Worker("test")
    order: list[int] = []
    priorities = (0, 5, -5, 5, 0)
    async with busy(worker):
        waiting = [
            await queued(worker, partial(order.append, number), priority)
            for number, priority in enumerate(priorities)
        ]
    await asyncio.gather(*waiting)
    assert order == [1, 3, 0, 4, 2]


async def test_waiting_makes_up_for_priority() -> None:
    """However many urgent steps come, one that has waited longer by the difference goes first."""
    worker = Worker("test")
    order: list[str] = []
    async with busy(worker):
        low = await queued(worker, partial(order.append, "low"), -0.05)
        early = await queued(worker, partial(order.append, "early"))
        await asyncio.sleep(0.1)
        late = [await queued(worker, partial(order.append, "late")) for _ in range(9)]
    await asyncio.gather(low, early, *late)
    assert order == ["early", "low", *["late"] * 9]


async def test_a_posted_step_goes_before_all_that_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker("test")
    order: list[str] = []
    async with busy(worker):
        waiting = await queued(worker, partial(order.append, "urgent"), 100)
        worker.post(partial(order.append, "posted"))
        worker.post(lambda: [].pop())
    await waiting
    assert order == ["posted", "urgent"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_a_closed_worker_drops_what_waits_and_takes_no_more() -> None:
    worker = Worker("test")
    ran: list[int] = []
    async with busy(worker) as first:
        waiting = await queued(worker, partial(ran.append, 1))
        worker.post(partial(ran.append, 2))
        worker.close()
        worker.post(partial(ran.append, 3))
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (await first).value
    assert ran == []
