"""What a server tells of itself by grpc.health.v1: whether it lives, whether it is ready, and how
what it needs is.

Knows gRPC's protocol of health and no service. Not the library's servicer: that one sends to its
watchers with a lock held, so that one who does not read would hold up the next change for ever, and
when a server drains it takes all names for lost, alive or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from uag_common.rpc.metadata import Context

LIVE = "live"
"""SERVING from the first answer of the port to the end of the process, unless the model hangs."""

READY = "ready"
"""SERVING while calls are welcome. The empty name and the names of the services say the same."""

_STATUS = {
    True: health_pb2.HealthCheckResponse.SERVING,
    False: health_pb2.HealthCheckResponse.NOT_SERVING,
    None: health_pb2.HealthCheckResponse.SERVICE_UNKNOWN,
}


class Health:
    """The truth of all names: `changed` is set, and replaced, at each change."""

    def __init__(self, service_names: Iterable[str]) -> None:
        self._ready_names = ("", READY, *service_names)
        self._peers: dict[str, bool] = {}
        self._live = True
        self._serving = False
        self._draining = False
        self.ended = False
        self.changed = asyncio.Event()

    def set_live(self, live: bool) -> None:
        """Whether the process can go on; nothing is SERVING while it cannot."""
        self._live = live
        self._tell()

    def set_serving(self, serving: bool) -> None:
        """Whether its services are ready for calls."""
        self._serving = serving
        self._tell()

    def set_peer(self, name: str, serving: bool) -> None:
        """What is told of a service that this one needs, under that one's name."""
        self._peers[name] = serving
        self._tell()

    def drain(self) -> None:
        """From now on nothing is SERVING but life itself, whatever is set."""
        self._draining = True
        self._tell()

    def end(self) -> None:
        """Watches end, present and future ones, after what they were told last."""
        self.ended = True
        self._tell()

    def serves(self, name: str) -> bool | None:
        """None if there is nothing of that name."""
        if name == LIVE:
            return self._live
        welcome = self._live and not self._draining
        if name in self._ready_names:
            return self._serving and welcome
        peer = self._peers.get(name)
        return None if peer is None else peer and welcome

    def names(self) -> tuple[str, ...]:
        """All that something is told of."""
        return (*self._ready_names, LIVE, *self._peers)

    def _tell(self) -> None:
        told, self.changed = self.changed, asyncio.Event()
        told.set()


class HealthServicer(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Serves `grpc.health.v1.Health`."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def Check(  # noqa: N802 - named by the protocol
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> health_pb2.HealthCheckResponse:
        serves = self._health.serves(request.service)
        if serves is None:
            # As the protocol has it. No typed error: the name is no fault of a client of ours.
            await context.abort(grpc.StatusCode.NOT_FOUND, "nothing here has that name")
        return _response(serves)

    async def List(  # noqa: N802
        self,
        request: health_pb2.HealthListRequest,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> health_pb2.HealthListResponse:
        statuses = {name: _response(self._health.serves(name)) for name in self._health.names()}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(  # noqa: N802
        self,
        request: health_pb2.HealthCheckRequest,
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        told = None
        while True:
            # Before the look: a change while the last one is sent must not be missed.
            changed = self._health.changed
            response = _response(self._health.serves(request.service))
            if response != told:
                yield response
                told = response
            elif self._health.ended:
                return
            else:
                await changed.wait()


def _response(serves: bool | None) -> health_pb2.HealthCheckResponse:
    return health_pb2.HealthCheckResponse(status=_STATUS[serves])
