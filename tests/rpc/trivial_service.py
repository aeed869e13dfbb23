"""Small services on the server that all parts use: in the test's own process with handlers of the
test, or as a process of its own, to be abused and measured."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.struct_pb2 import Struct

from uag_common.rpc.metadata import Context
from uag_common.rpc.server import RpcServer, StopSignal
from uag_common.telemetry.telemetry import Telemetry

SERVICE = "uag.test.v1.Trivial"
ECHO, TICK, SESSION = (f"/{SERVICE}/{name}" for name in ("Echo", "Tick", "Session"))

FIRST_MESSAGE_SECONDS = 2.0

One = Callable[[Any, Context], Awaitable[Any]]
Stream = Callable[[Any, Context], AsyncIterator[Any]]


def number(value: float) -> Struct:
    """A message that says so."""
    message = Struct()
    message["number"] = value
    return message


async def echo(request: Struct, context: Context) -> Struct:  # noqa: ARG001
    return request


async def tick(request: Struct, context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
    for count in range(1_000_000):
        yield number(count)
        await asyncio.sleep(0.02)


async def session(requests: AsyncIterator[Struct], context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
    async for request in requests:
        yield request


def trivial_server(
    one: One = echo, stream: Stream = tick, both: Stream = session, first_seconds: float = 60
) -> RpcServer:
    """A server, not started yet, with these handlers for Echo, Tick and Session."""
    server = RpcServer((SERVICE,), Telemetry.unseen("test"), first_seconds)
    kind: Any = (Struct.FromString, Struct.SerializeToString)
    server.grpc.add_registered_method_handlers(  # type: ignore[attr-defined]
        SERVICE,
        {
            "Echo": grpc.unary_unary_rpc_method_handler(one, *kind),
            "Tick": grpc.unary_stream_rpc_method_handler(stream, *kind),
            "Session": grpc.stream_stream_rpc_method_handler(both, *kind),
        },
    )
    return server


@asynccontextmanager
async def serving(server: RpcServer) -> AsyncIterator[Any]:
    """Starts the server, and stops it at once in the end; a channel to it (of any type: the stubs
    know no call without serializers)."""
    port = await server.start("127.0.0.1:0", "listen")
    await server.set_serving(True)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(0)


async def main() -> None:
    server = trivial_server(first_seconds=FIRST_MESSAGE_SECONDS)
    port = await server.start("127.0.0.1:0", "listen")
    await server.set_serving(True)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await StopSignal(follow_stdin=True).wait()
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
