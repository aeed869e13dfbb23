"""Typed errors over a real socket, from a handler to what its caller makes of them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.rpc.trivial_service import ECHO, SERVICE, SESSION, TICK, number, serving, trivial_server
from uag_common.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    PeerRefusedError,
    PeerUnavailableError,
    PromptTooLongError,
    StaleContextError,
    UagError,
)
from uag_common.rpc.calls import MAX_OPEN_CALLS
from uag_common.rpc.errors import from_rpc_error
from uag_common.rpc.messages import MAX_NAME_BYTES
from uag_common.rpc.metadata import Context, traceparent
from uag_common.rpc.server import RpcServer

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def failing(error: Exception) -> RpcServer:
    """A server all of whose methods raise it, the streams after one answer."""

    async def one(request: Struct, context: Context) -> Struct:  # noqa: ARG001
        raise error

    async def stream(request: Struct, context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        yield request
        raise error

    async def both(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        async for request in requests:
            yield request
            raise error

    return trivial_server(one, stream, both)


async def how_each_ends(channel: Any) -> list[grpc.aio.AioRpcError]:
    """How Echo, Tick and Session end; the streams give their answer first."""
    data, errors = number(1).SerializeToString(), []
    one = channel.unary_unary(ECHO)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await one(data, timeout=10)
    errors.append(refused.value)
    for call in (
        channel.unary_stream(TICK)(data, timeout=10),
        channel.stream_stream(SESSION)(iter([data]), timeout=10),
    ):
        answers = aiter(call)
        assert await anext(answers) == data
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await anext(answers)
        errors.append(refused.value)
    return errors


@pytest.mark.parametrize(
    ("raised", "code", "arrives_as"),
    [
        (InvalidRequestError("open.seed", "no"), INVALID, PeerRefusedError),
        (PromptTooLongError("long"), grpc.StatusCode.OUT_OF_RANGE, PromptTooLongError),
        (StaleContextError("stale"), grpc.StatusCode.FAILED_PRECONDITION, StaleContextError),
        (OverloadedError("full", 2.5), grpc.StatusCode.RESOURCE_EXHAUSTED, OverloadedError),
        (DeadlineExceededError("idle"), grpc.StatusCode.DEADLINE_EXCEEDED, PeerUnavailableError),
        (PeerUnavailableError("gone"), grpc.StatusCode.UNAVAILABLE, PeerUnavailableError),
    ],
)
async def test_a_typed_error_ends_a_call_of_each_kind(
    raised: UagError, code: grpc.StatusCode, arrives_as: type[UagError]
) -> None:
    async with serving(failing(raised)) as channel:
        for error in await how_each_ends(channel):
            assert (error.code(), error.details()) == (code, str(raised))
            assert type(from_rpc_error("peer", error)) is arrives_as


async def test_a_peer_tells_the_field_and_the_time_of_the_next_try() -> None:
    async with serving(
        failing(InvalidRequestError("open.constraint.regex", "explodes"))
    ) as channel:
        for error in await how_each_ends(channel):
            refused = from_rpc_error("verify service", error)
            assert isinstance(refused, PeerRefusedError)
            assert refused.refusal is not None
            assert refused.refusal.field == "open.constraint.regex"
            assert refused.refusal.problem == "explodes"
            assert str(refused) == "verify service: open.constraint.regex: explodes"
    async with serving(failing(OverloadedError("full", 2.5))) as channel:
        for error in await how_each_ends(channel):
            full = from_rpc_error("verify service", error)
            assert isinstance(full, OverloadedError)
            assert full.retry_seconds == 2.5


async def test_a_bug_is_told_in_a_word_and_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(failing(KeyError("the user's secret"))) as channel:
        for error in await how_each_ends(channel):
            assert error.code() is grpc.StatusCode.INTERNAL
            assert "secret" not in str(error.details()) + str(error.trailing_metadata())
    assert caplog.text.count("secret") == 3


async def test_a_client_s_mistake_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with serving(failing(InvalidRequestError("a", "b"))) as channel:
            await how_each_ends(channel)
            for method in (ECHO, TICK, SESSION, "/grpc.health.v1.Health/Check", "/no/Method"):
                with pytest.raises(grpc.aio.AioRpcError):
                    await channel.unary_unary(method)(b"\xff", timeout=5)
    assert not caplog.records


@pytest.mark.parametrize(
    "method",
    [
        ECHO,
        TICK,
        SESSION,
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
async def test_bytes_that_are_no_message_are_refused_by_every_method(method: str) -> None:
    async with serving(trivial_server()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in channel.unary_stream(method)(b"\xff\xff", timeout=5):
                pass
        assert refused.value.code() is INVALID


async def test_health_answers_as_ever_and_keeps_no_long_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(trivial_server()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=""), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        async for health in stub.Watch(health_pb2.HealthCheckRequest(service=""), timeout=5):
            assert health.status == health_pb2.HealthCheckResponse.SERVING
            break
        for name, code in (
            ("no.such.Service", grpc.StatusCode.NOT_FOUND),
            ("n" * MAX_NAME_BYTES, INVALID),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=5)
            assert refused.value.code() is code
    assert not caplog.records


@pytest.mark.parametrize("method", [ECHO, TICK, SESSION])
async def test_a_call_without_a_message_ends_in_time(method: str) -> None:
    async with serving(trivial_server(first_seconds=0.2)) as channel:
        call = channel.stream_stream(method)(timeout=10)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in call:
                pass
        assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "within 0.2 s" in str(refused.value.details())


async def test_only_the_first_message_is_waited_for_with_impatience() -> None:
    async with serving(trivial_server(first_seconds=0.2)) as channel:
        call = channel.stream_stream(SESSION)(timeout=10)
        for count in range(2):
            await call.write(number(count).SerializeToString())
            assert await call.read() == number(count).SerializeToString()
            await asyncio.sleep(0.4)
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF  # type: ignore[attr-defined]


async def test_more_calls_than_there_may_be_are_refused_and_come_back_later() -> None:
    async def stream(request: Struct, context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        yield request
        await asyncio.sleep(60)

    async with serving(trivial_server(stream=stream)) as channel:
        data = number(0).SerializeToString()
        calls = [channel.unary_stream(TICK)(data) for _ in range(MAX_OPEN_CALLS)]
        await asyncio.gather(*(call.read() for call in calls))
        echo = channel.unary_unary(ECHO)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await echo(data, timeout=5)
        full = from_rpc_error("peer", refused.value)
        assert isinstance(full, OverloadedError)
        assert full.retry_seconds == 1.0
        stub = health_pb2_grpc.HealthStub(channel)
        await stub.Check(health_pb2.HealthCheckRequest(), timeout=5)
        for call in calls:
            call.cancel()
        await asyncio.sleep(1)
        assert await echo(data, timeout=5) == data


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ((), ""),
        ((("traceparent", "00-a-b-01"),), "00-a-b-01"),
        ((("tracestate", "a=b"),), ""),
    ],
)
async def test_the_caller_s_trace_is_in_its_metadata(
    metadata: tuple[tuple[str, str], ...], expected: str
) -> None:
    seen = []

    async def one(request: Struct, context: Context) -> Struct:
        seen.append(traceparent(context))
        return request

    async with serving(trivial_server(one)) as channel:
        await channel.unary_unary(ECHO)(b"", timeout=5, metadata=metadata)
    assert seen == [expected]


@pytest.mark.parametrize("ending", ["good", "refused"])
@pytest.mark.parametrize("method", ["Echo", "Tick", "Session"])
async def test_a_call_that_has_ended_keeps_nothing_of_what_it_was_sent(
    method: str, ending: str
) -> None:
    """Without any help by the garbage collector, which comes when it comes."""

    def taken() -> Struct:
        if ending == "refused":
            raise PromptTooLongError("refused")
        return number(1)

    async def one(request: Struct, context: Context) -> Struct:  # noqa: ARG001
        return taken()

    async def stream(request: Struct, context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        yield taken()

    async def both(
        requests: AsyncIterator[Struct],
        context: Context,  # noqa: ARG001
    ) -> AsyncIterator[Struct]:
        async for _ in requests:
            yield taken()

    def marked() -> bool:
        return any(type(held) is Struct and "marked" in held for held in gc.get_objects())

    sent = Struct()
    sent["marked"] = True
    data = sent.SerializeToString()
    del sent
    async with serving(trivial_server(one, stream, both)) as channel:
        gc.collect()
        gc.disable()
        try:
            call = channel.stream_stream(f"/{SERVICE}/{method}")(iter([data]))
            with contextlib.suppress(grpc.aio.AioRpcError):
                async for _ in call:
                    pass
            for _ in range(100):
                await asyncio.sleep(0.05)
                if not marked():
                    break
            assert not marked()
        finally:
            gc.enable()
