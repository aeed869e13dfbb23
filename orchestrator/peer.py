"""Keeps up with one model service: whether it serves, what its model is, its tokenizer."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.side import Side
from uag.model.v1 import model_pb2, model_pb2_grpc
from uag_common.errors import UagError
from uag_common.rpc.channel import open_channel
from uag_common.rpc.errors import from_rpc_error
from uag_common.rpc.model_messages import collect_tokenizer, decode_description

log = logging.getLogger(__name__)

DESCRIBE_SECONDS = 30.0
FIRST_BACKOFF_SECONDS = 0.1
LAST_BACKOFF_SECONDS = 3.0


class ModelPeer:
    """A draft or verify service at an address. `side` is set while it serves, and `max_sessions`
    is how many sessions it may have open then."""

    def __init__(
        self, name: str, service: str, address: str, on_change: Callable[[], Awaitable[None]]
    ) -> None:
        self._service = service
        self.name = name
        self.address = address
        self.channel = open_channel(address)
        self.side: Side | None = None
        self.max_sessions = 0
        self.reason = f"{name} at {address} was not reached yet"
        self._on_change = on_change
        self._known: Side | None = None
        self._backoff = FIRST_BACKOFF_SECONDS

    async def watch(self) -> NoReturn:
        """Follows the service's health for ever; reconnects with growing pauses."""
        while True:
            try:
                await self._follow()
                await self._gone(f"{self.name} at {self.address} ended its health stream")
            except UagError as error:
                await self._gone(str(error))
            await asyncio.sleep(self._backoff * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            self._backoff = min(2 * self._backoff, LAST_BACKOFF_SECONDS)

    async def _follow(self) -> None:
        request = health_pb2.HealthCheckRequest(service=self._service)
        try:
            async for health in health_pb2_grpc.HealthStub(self.channel).Watch(request):
                if health.status == health_pb2.HealthCheckResponse.SERVING:
                    await self._serves()
                elif health.status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN:
                    await self._gone(f"what serves at {self.address} is no {self.name}")
                else:
                    await self._gone(f"{self.name} at {self.address} is not ready yet")
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(f"{self.name} at {self.address}", error) from error

    async def _serves(self) -> None:
        stub = model_pb2_grpc.ModelServiceStub(self.channel)
        side = await self._describe(stub)
        load = await stub.GetLoad(model_pb2.GetLoadRequest(), timeout=DESCRIBE_SECONDS)
        self.max_sessions = load.max_sessions
        self._backoff = FIRST_BACKOFF_SECONDS
        self._known = self.side = side
        log.info("%s at %s serves %s", self.name, self.address, side.description.model_id)
        await self._on_change()

    async def _describe(self, stub: Any) -> Side:
        answer = await stub.DescribeModel(
            model_pb2.DescribeModelRequest(), timeout=DESCRIBE_SECONDS
        )
        description = decode_description(answer.model)
        if self._known is not None and self._known.description == description:
            return self._known
        chunks = stub.GetTokenizer(model_pb2.GetTokenizerRequest(), timeout=DESCRIBE_SECONDS)
        files = await collect_tokenizer(chunks)
        return await asyncio.to_thread(Side.build, description, files)

    async def _gone(self, reason: str) -> None:
        if reason != self.reason:
            log.warning("%s", reason)
        self.side, self.reason = None, reason
        await self._on_change()

    async def close(self) -> None:
        await self.channel.close(grace=None)
