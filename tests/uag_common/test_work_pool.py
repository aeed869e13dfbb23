from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref

import pytest

from uag_common.errors import OverloadedError
from uag_common.work_pool import WorkPool


async def test_work_runs_beside_the_loop_and_gives_what_it_gives() -> None:
    pool = WorkPool("quotients", threads=1, most_waiting=0)
    assert await pool.run(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await pool.run(divmod, 7, 0)
    assert await pool.run(threading.get_ident) != threading.get_ident()


async def test_what_finds_no_place_is_refused_at_once_and_told_when_to_come_again() -> None:
    pool, go = WorkPool("long texts", threads=1, most_waiting=2), threading.Event()
    running = [asyncio.create_task(pool.run(go.wait, 30)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError, match="long texts") as refused:
        await pool.run(go.wait, 30)
    assert refused.value.retry_seconds
    go.set()
    assert await asyncio.gather(*running) == [True] * 3
    assert await pool.run(go.is_set)


async def test_work_that_nobody_waits_for_is_dropped_and_its_place_is_free() -> None:
    pool, go, ran = WorkPool("texts", threads=1, most_waiting=1), threading.Event(), list[int]()
    first = asyncio.create_task(pool.run(go.wait, 30))
    left = asyncio.create_task(pool.run(ran.append, 1))
    await asyncio.sleep(0.05)
    left.cancel()
    await asyncio.sleep(0.05)
    last = asyncio.create_task(pool.run(ran.append, 2))
    await asyncio.sleep(0.05)
    go.set()
    await asyncio.gather(first, last)
    assert ran == [2]


async def test_a_closed_pool_drops_what_waits() -> None:
    pool, go = WorkPool("texts", threads=1, most_waiting=1), threading.Event()
    running = [asyncio.create_task(pool.run(go.wait, 30)) for _ in range(2)]
    await asyncio.sleep(0.05)
    pool.close()
    go.set()
    results = await asyncio.gather(*running, return_exceptions=True)
    assert results[0] is True
    assert isinstance(results[1], asyncio.CancelledError)


async def test_what_failed_is_kept_by_nobody() -> None:
    """Without any help by the garbage collector."""

    class Prompt:
        pass

    def refuse(prompt: Prompt) -> None:
        raise ValueError(prompt)

    async def ask(kept: weakref.WeakSet[Prompt]) -> None:
        prompt = Prompt()
        kept.add(prompt)
        with contextlib.suppress(ValueError):
            await pool.run(refuse, prompt)

    pool, kept = WorkPool("texts", threads=1, most_waiting=0), weakref.WeakSet[Prompt]()
    gc.disable()
    try:
        await ask(kept)
        for _ in range(100):
            await asyncio.sleep(0.01)
            if not kept:
                break
        assert not kept
    finally:
        gc.enable()
