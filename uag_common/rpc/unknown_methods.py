"""A gRPC server that refuses calls of methods that it does not have by itself.

grpc.aio decodes the path of a call in the loop that accepts calls. One path that is no UTF-8 raises
there, and grpc.aio then shuts the server down: one request of anybody would end a service.
Generated code registers every method by its name, and a call of a registered method arrives as
such; so a call that arrives in the general way is of an unknown method, and is refused here before
its path is looked at.

Reaches into private parts of grpcio, which has no public way: `tests/rpc/test_abuse.py` tells when
they change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NoReturn

import grpc
from grpc._cython import cygrpc
from grpc.aio import _server


class Server(_server.Server):
    """`grpc.aio.server(...)`. Serves registered methods alone, as generated code adds them."""

    def __init__(
        self,
        interceptors: Sequence[grpc.aio.ServerInterceptor],  # type: ignore[type-arg]
        options: Sequence[tuple[str, object]],
    ) -> None:
        self._loop = cygrpc.get_working_loop()
        self._server = _Core(self._loop, None, (), tuple(interceptors), tuple(options), None)


class _Core(cygrpc.AioServer):  # type: ignore[misc]
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._refusals: set[asyncio.Task[None]] = set()

    async def _request_call(self) -> NoReturn:
        """Waits for the next call that no registered method takes. Never returns one to the loop
        that would decode its path."""
        while True:
            call = await super()._request_call()
            task = asyncio.ensure_future(_refuse(call))
            self._refusals.add(task)
            task.add_done_callback(self._refusals.discard)


async def _refuse(call: Any) -> None:
    context = cygrpc._ServicerContext(call, None, None, asyncio.get_running_loop())
    try:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "the service has no such method")
    except grpc.aio.BaseError:
        # The refusal itself, or a client that left before it.
        return
