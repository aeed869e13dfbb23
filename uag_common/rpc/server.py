"""A gRPC server as all services run it: port, health, reflection, and a clean end.

Knows no service; the composition in each `__main__` adds its own.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Iterable
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE
from grpc_reflection.v1alpha import reflection

from uag_common.addresses import check_listen
from uag_common.errors import StartError
from uag_common.rpc.calls import OpenCalls
from uag_common.rpc.channel import SERVER_OPTIONS
from uag_common.rpc.errors import ErrorInterceptor
from uag_common.rpc.health import Health, HealthServicer
from uag_common.rpc.messages import FIRST_MESSAGE_SECONDS
from uag_common.rpc.observation import CallObserver
from uag_common.rpc.unknown_methods import Server
from uag_common.telemetry.telemetry import Telemetry

log = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 1.0
"""For answers to end by themselves when the grace is over, and for what is still on its way to
clients when all calls are over."""


class RpcServer:
    """Answers health and reflection from the start; its services are SERVING once it is told so."""

    def __init__(
        self,
        service_names: Iterable[str],
        telemetry: Telemetry,
        first_message_seconds: float = FIRST_MESSAGE_SECONDS,
    ) -> None:
        self._calls = OpenCalls()
        interceptor = ErrorInterceptor(self._calls, CallObserver(telemetry), first_message_seconds)
        self.grpc = cast(grpc.aio.Server, Server((interceptor,), SERVER_OPTIONS))
        names = tuple(service_names)
        self._health = Health(names)
        health_pb2_grpc.add_HealthServicer_to_server(HealthServicer(self._health), self.grpc)
        shown = (*names, HEALTH_SERVICE, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(shown, self.grpc)

    async def start(self, listen: str, setting: str) -> int:
        """Binds `listen` ("host:port", port 0 takes a free one), answers from then on, and returns
        the port. Raises StartError that names the `setting` and who has the port."""
        # gRPC would print a line of its own for each address that it cannot have.
        check_listen(listen, setting)
        try:
            port = self.grpc.add_insecure_port(listen)
        except RuntimeError as error:
            raise StartError(f"cannot listen on {listen} ({error}), see {setting}") from error
        await self.grpc.start()
        return port

    async def set_serving(self, serving: bool) -> None:
        """Whether its services are ready for calls."""
        self._health.set_serving(serving)

    async def set_health(self, name: str, serving: bool) -> None:
        """What health tells of a service that this one needs, by that one's name."""
        self._health.set_peer(name, serving)

    def set_live(self, live: bool) -> None:
        """Whether the process can go on at all; while not, nothing here is ready."""
        self._health.set_live(live)

    @property
    def ending(self) -> asyncio.Event:
        """Set when the server ends and its grace is over. An answer that waits for it beside its
        work has LAST_WORDS_SECONDS from then on to tell its client that it ends."""
        return self._calls.ending

    async def stop(self, grace_seconds: float) -> None:
        """Is not ready any more, refuses new calls, lets running ones finish within the grace,
        tells those that are left to end, those who watch health among them, and cuts off what does
        not."""
        self._health.drain()
        self._calls.close()
        await self._calls.idle(grace_seconds)
        self._calls.end()
        self._health.end()
        await self.grpc.stop(LAST_WORDS_SECONDS)
        # What was cut off learns of it a moment later, and the end of the loop must not come first.
        await self._calls.idle(LAST_WORDS_SECONDS)


class StopSignal:
    """Set by SIGTERM, by SIGINT and, if so asked, by the end of standard input: a parent that dies
    without a word closes that pipe, and nothing is left behind."""

    def __init__(self, *, follow_stdin: bool) -> None:
        self._event = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._event.set)
        self._stdin = asyncio.ensure_future(self._follow_stdin()) if follow_stdin else None

    async def _follow_stdin(self) -> None:
        reader = asyncio.StreamReader()
        try:
            await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
            )
            await reader.read()
        except (OSError, ValueError):
            log.warning("standard input is no pipe: there is no parent to stop with")
            return
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()

    async def before(self, *works: asyncio.Future[Any]) -> bool:
        """Waits for one of the `works` or for the signal; whether one of them was done first. Its
        error is its own affair: ask its result."""
        waiting = asyncio.ensure_future(self.wait())
        await asyncio.wait((*works, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return any(work.done() for work in works)
