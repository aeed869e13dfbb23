from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from uag_common.admission import Admission
from uag_common.errors import DeadlineExceededError, OverloadedError


async def test_one_session_too_many_is_refused_until_another_ends() -> None:
    admission = Admission(max_sessions=2, idle_seconds=10)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(admission.session())
        for _ in range(3):
            with pytest.raises(OverloadedError, match="2 sessions are open") as refused:
                await stack.enter_async_context(admission.session())
        assert (refused.value.retry_seconds or 0) > 0
        assert admission.open_sessions == 2
    assert admission.open_sessions == 0
    async with admission.session():
        assert admission.open_sessions == 1


async def test_a_session_that_gets_no_command_ends() -> None:
    admission = Admission(max_sessions=1, idle_seconds=0.02)
    with pytest.raises(DeadlineExceededError, match=r"no command came for 0\.02 s"):
        async with admission.session():
            await asyncio.sleep(5)
    assert admission.open_sessions == 0


async def test_work_is_not_idle_and_each_command_starts_the_timer_anew() -> None:
    admission = Admission(max_sessions=1, idle_seconds=0.1)
    async with admission.session() as idle:
        with idle.working():
            await asyncio.sleep(0.2)
        for _ in range(3):
            await asyncio.sleep(0.06)
            with idle.working():
                pass


async def test_a_session_may_be_idle_after_its_work_too() -> None:
    admission = Admission(max_sessions=1, idle_seconds=0.02)

    async def work_once() -> None:
        async with admission.session() as idle:
            with idle.working():
                pass
            await asyncio.sleep(5)

    with pytest.raises(DeadlineExceededError):
        await work_once()


async def test_an_error_and_a_cancel_leave_as_they_came() -> None:
    admission = Admission(max_sessions=1, idle_seconds=10)
    for raised in (ZeroDivisionError, TimeoutError, asyncio.CancelledError):
        with pytest.raises(raised):
            async with admission.session():
                raise raised
        assert admission.open_sessions == 0
