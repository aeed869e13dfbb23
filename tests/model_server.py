"""A model service over a real socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc

from tests.unseen import unseen_model
from uag.model.v1 import model_pb2, model_pb2_grpc
from uag_common.admission import Admission
from uag_common.model import Model
from uag_common.prefix_cache import PrefixCache
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import ModelServicer
from uag_common.rpc.server import RpcServer
from uag_common.telemetry.telemetry import Telemetry
from uag_common.worker import Worker

AddService = Callable[[grpc.aio.Server, ModelSlot], None]


@dataclass(frozen=True, slots=True)
class ModelServer:
    channel: grpc.aio.Channel
    worker: Worker

    async def load(self) -> model_pb2.GetLoadResponse:
        stub = model_pb2_grpc.ModelServiceStub(self.channel)
        load: model_pb2.GetLoadResponse = await stub.GetLoad(model_pb2.GetLoadRequest(), timeout=5)
        return load

    async def load_once(
        self, wanted: Callable[[model_pb2.GetLoadResponse], bool]
    ) -> model_pb2.GetLoadResponse:
        """Its load, once it is as wanted."""
        async with asyncio.timeout(5):
            while True:
                load = await self.load()
                if wanted(load):
                    return load
                await asyncio.sleep(0.01)

    async def resting(self) -> model_pb2.GetLoadResponse:
        """Its load, once no session is open and no step waits or runs."""
        return await self.load_once(lambda load: not load.open_sessions and not load.pending_steps)


@asynccontextmanager
async def model_server(
    model: Model,
    add_service: AddService,
    *,
    max_sessions: int = 4,
    idle_seconds: float = 10.0,
    prefix_bytes: int = 10**6,
) -> AsyncIterator[ModelServer]:
    """Serves `model` as the two model services do."""
    server, slot, worker = RpcServer((), Telemetry.unseen("test")), ModelSlot(), Worker("test")
    admission = Admission(max_sessions, idle_seconds)
    slot.fill(unseen_model(model, worker, admission, PrefixCache(prefix_bytes)))
    model_pb2_grpc.add_ModelServiceServicer_to_server(ModelServicer(slot), server.grpc)
    add_service(server.grpc, slot)
    port = await server.start("127.0.0.1:0", "listen")
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield ModelServer(channel, worker)
    finally:
        await server.stop(0)
        worker.close()
