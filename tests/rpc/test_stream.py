"""The client's end of a session: what a command's failure means, whenever the stream ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct

from tests.rpc.trivial_service import SESSION, number, serving, trivial_server
from uag_common.errors import InvalidRequestError, PeerRefusedError, PeerUnavailableError
from uag_common.rpc.metadata import Context
from uag_common.rpc.stream import SessionStream

ONE, TWO = number(1).SerializeToString(), number(2).SerializeToString()


@pytest.mark.parametrize("pause", [0, 0.1])
async def test_a_refusal_is_told_whole_whenever_the_stream_ends(pause: float) -> None:
    """Also when it ends just while the next command is being written."""

    async def both(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        yield await anext(requests)
        raise InvalidRequestError("open.seed", "no")

    async with serving(trivial_server(both=both)) as channel:
        stream: SessionStream[bytes, bytes] = SessionStream(
            "verify service", channel.stream_stream(SESSION)()
        )
        await stream.exchange(ONE, 5)
        await asyncio.sleep(pause)
        for _ in range(2):
            with pytest.raises(PeerRefusedError) as refused:
                await stream.exchange(TWO, 5)
            assert refused.value.refusal is not None
            assert refused.value.refusal.field == "open.seed"


async def test_a_session_that_its_peer_ends_or_leaves_hanging_is_lost() -> None:
    async def both(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        if await anext(requests) == number(1):
            await asyncio.sleep(60)
        yield number(2)

    async with serving(trivial_server(both=both)) as channel:
        method = channel.stream_stream(SESSION)
        hanging: SessionStream[bytes, bytes] = SessionStream("draft service", method())
        with pytest.raises(PeerUnavailableError, match=r"did not answer within 0\.2 s"):
            await hanging.exchange(ONE, 0.2)
        short: SessionStream[bytes, bytes] = SessionStream("draft service", method())
        await short.exchange(TWO, 5)
        with pytest.raises(PeerUnavailableError, match="ended the session"):
            await short.exchange(TWO, 5)


async def test_who_waits_behind_a_command_that_was_not_answered_is_told_so_too() -> None:
    async def both(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        async for _ in requests:
            await asyncio.sleep(60)
            yield number(1)

    async with serving(trivial_server(both=both)) as channel:
        stream: SessionStream[bytes, bytes] = SessionStream(
            "draft service", channel.stream_stream(SESSION)()
        )
        for command in (ONE, TWO):
            await stream.send(command, 5)
        for answer in (stream.receive(0.2), stream.receive(60), stream.exchange(ONE, 60)):
            with pytest.raises(PeerUnavailableError, match=r"did not answer within 0\.2 s"):
                async with asyncio.timeout(5):
                    await answer


async def test_a_caller_that_is_cancelled_is_cancelled() -> None:
    async def both(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        await asyncio.sleep(60)
        yield await anext(requests)

    async with serving(trivial_server(both=both)) as channel:
        stream: SessionStream[bytes, bytes] = SessionStream(
            "draft service", channel.stream_stream(SESSION)()
        )
        waiting = asyncio.ensure_future(stream.exchange(ONE, 60))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_a_peer_that_cannot_be_reached_is_unavailable() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        method: Any = channel.stream_stream(SESSION, bytes, bytes)
        stream: SessionStream[bytes, bytes] = SessionStream("draft service", method())
        with pytest.raises(PeerUnavailableError, match="draft service: failed to connect"):
            await stream.exchange(ONE, 5)


async def test_commands_may_be_sent_before_earlier_ones_are_answered() -> None:
    """Also while an earlier one is being written. Answers come in the order of the commands."""

    async def both(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        async for request in requests:
            yield request

    async with serving(trivial_server(both=both)) as channel:
        stream: SessionStream[bytes, bytes] = SessionStream(
            "draft service", channel.stream_stream(SESSION)()
        )
        await asyncio.gather(*(stream.send(command, 5) for command in (ONE, TWO) * 10))
        assert [await stream.receive(5) for _ in range(20)] == [ONE, TWO] * 10
        stream.close()


class BrokenCall:
    """A call whose stream ended under a write, before the peer's status was there."""

    def __init__(self) -> None:
        self._callback: Callable[[Any], None] | None = None

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callback = callback

    async def write(self, command: bytes) -> None:  # noqa: ARG002
        if self._callback is not None:
            self._callback(self)
        metadata = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(
            await self.code(), metadata, metadata, await self.details(), None
        )

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.INTERNAL

    async def details(self) -> str:
        return "Internal error from Core"

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()


async def test_a_stream_that_ends_without_a_status_is_lost_and_no_fault_of_the_peer() -> None:
    call: Any = BrokenCall()
    stream: SessionStream[bytes, bytes] = SessionStream("verify service", call)
    with pytest.raises(PeerUnavailableError, match="ended the session"):
        await stream.exchange(ONE, 5)
