"""Reading a stream one message ahead: what is known when, and what is left at its end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from uag_common.rpc.read_ahead import ReadAhead


class Messages:
    """A stream that gives what it is given."""

    def __init__(self) -> None:
        self._given: asyncio.Queue[int | BaseException] = asyncio.Queue()

    def give(self, *messages: int | BaseException) -> None:
        for message in messages:
            self._given.put_nowait(message)

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        message = await self._given.get()
        if isinstance(message, BaseException):
            raise message
        return message


@pytest.fixture
def lost() -> list[object]:
    """What the loop reports of exceptions that nobody looked at."""
    return []


async def settled() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def nothing_is_left() -> bool:
    gc.collect()
    return asyncio.all_tasks() == {asyncio.current_task()}


async def test_it_is_known_when_the_next_message_is_there() -> None:
    messages = Messages()
    requests = ReadAhead(messages)
    messages.give(1)
    read = await requests.next()
    assert read is not None
    first, superseded = read
    await settled()
    assert (first, superseded()) == (1, False)
    messages.give(2)
    await settled()
    assert superseded()
    # Any thread may ask.
    assert await asyncio.to_thread(superseded)
    read = await requests.next()
    assert read is not None
    assert (read[0], read[1]()) == (2, False)
    await requests.aclose()
    assert nothing_is_left()


async def test_the_end_of_a_stream_is_nothing_and_leaves_nothing() -> None:
    messages = Messages()
    requests = ReadAhead(messages)
    messages.give(1, StopAsyncIteration())
    read = await requests.next()
    assert read is not None
    await settled()
    assert read[1]()
    assert await requests.next() is None
    await requests.aclose()
    assert nothing_is_left()


async def test_a_stream_that_breaks_is_told_to_whoever_reads_on() -> None:
    messages = Messages()
    requests = ReadAhead(messages)
    messages.give(ConnectionError("broken"))
    with pytest.raises(ConnectionError, match="broken"):
        await requests.next()
    await requests.aclose()
    assert nothing_is_left()


@pytest.mark.parametrize("broken", [True, False])
async def test_closing_reads_no_further_and_loses_no_exception(
    lost: list[object], broken: bool
) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, told: lost.append(told))
    messages = Messages()
    requests = ReadAhead(messages)
    messages.give(1)
    await requests.next()
    if broken:
        messages.give(ConnectionError("broken"))
    await settled()
    await requests.aclose()
    del requests
    assert nothing_is_left()
    assert lost == []


async def test_a_stream_that_was_read_may_be_closed_at_once() -> None:
    """An asynchronous generator cannot be closed while it runs."""

    async def endless() -> AsyncGenerator[int, None]:
        while True:
            await asyncio.sleep(60)
            yield 1

    messages = endless()
    async with aclosing(messages), aclosing(ReadAhead(messages)):
        await settled()
    assert nothing_is_left()


async def test_a_stream_that_nobody_reads_is_closed_as_well() -> None:
    requests = ReadAhead(Messages())
    await requests.aclose()
    assert nothing_is_left()
