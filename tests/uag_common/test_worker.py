from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from uag_common.worker import Worker


async def test_steps_run_one_at_a_time_off_the_event_loop() -> None:
    worker, seen = Worker("test"), []

    def step(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    results = await asyncio.gather(*(worker.run(partial(step, n)) for n in range(5)))
    assert [timed.value for timed in results] == list(range(5))
    threads = {thread for _, thread in seen}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_step_whose_caller_is_gone_is_never_run() -> None:
    worker, release, ran = Worker("test"), threading.Event(), []
    first = asyncio.ensure_future(worker.run(lambda: release.wait(10)))
    second = asyncio.ensure_future(worker.run(lambda: ran.append(1)))
    await asyncio.sleep(0.01)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    assert (await first).value
    await worker.run(lambda: None)
    assert ran == []


async def test_waiting_and_running_are_told_apart() -> None:
    worker, release = Worker("test"), threading.Event()
    first = asyncio.ensure_future(worker.run(lambda: release.wait(10)))
    second = asyncio.ensure_future(worker.run(lambda: None))
    await asyncio.sleep(0.05)
    release.set()
    assert (await second).time.queue_seconds >= 0.04
    assert (await second).time.forward_seconds < (await first).time.forward_seconds
