"""How a server ends: in the order that lets each call say what it has to say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.rpc.trivial_service import ECHO, TICK, number, serving, trivial_server
from uag_common.rpc.metadata import Context
from uag_common.rpc.server import LAST_WORDS_SECONDS, RpcServer

Tick = grpc.aio.UnaryStreamCall[bytes, bytes]

LAST_WORD = number(-1).SerializeToString()


def ending_server(seconds: float, *, obedient: bool = True) -> RpcServer:
    """A server whose answers take so long; obedient ones end when the server does."""

    async def stream(request: Struct, context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        yield request
        try:
            async with asyncio.timeout(seconds):
                await (server.ending if obedient else asyncio.Event()).wait()
            yield number(-1)
        except TimeoutError:
            yield request

    server = trivial_server(stream=stream)
    return server


async def started(channel: Any) -> Tick:
    """A call of Tick that has given its first answer."""
    call: Tick = channel.unary_stream(TICK)(number(1).SerializeToString(), timeout=30)
    await call.read()
    return call


async def test_within_the_grace_answers_run_to_their_own_end() -> None:
    server = ending_server(0.5)
    async with serving(server) as channel:
        call = await started(channel)
        stopping = asyncio.ensure_future(server.stop(10))
        await asyncio.sleep(0.2)
        assert not server.ending.is_set()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary(ECHO)(b"", timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await call.read() == number(1).SerializeToString()
        assert await call.code() is grpc.StatusCode.OK
        await asyncio.wait_for(stopping, 2)


async def test_after_the_grace_answers_say_their_last_word() -> None:
    server = ending_server(60)
    async with serving(server) as channel:
        calls = [await started(channel) for _ in range(3)]
        began = time.monotonic()
        stopping = asyncio.ensure_future(server.stop(0.3))
        for call in calls:
            assert await call.read() == LAST_WORD
            assert await call.code() is grpc.StatusCode.OK
        await stopping
        assert 0.3 <= time.monotonic() - began < 0.3 + LAST_WORDS_SECONDS


async def test_what_does_not_end_is_cut() -> None:
    server = ending_server(60, obedient=False)
    async with serving(server) as channel:
        call = await started(channel)
        began = time.monotonic()
        await server.stop(0.3)
        took = time.monotonic() - began
        assert 0.3 + LAST_WORDS_SECONDS <= took < 0.3 + LAST_WORDS_SECONDS + 1
        assert await call.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


async def test_watchers_of_health_hold_up_no_end_and_are_told() -> None:
    server = trivial_server()
    async with serving(server) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        call = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await call.read()).status == health_pb2.HealthCheckResponse.SERVING
        began = time.monotonic()
        await server.stop(10)
        assert time.monotonic() - began < LAST_WORDS_SECONDS
        assert (await call.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await call.code() is grpc.StatusCode.OK
