"""What the draft and the verify service have in common: a model that loads while the port answers,
its description, its tokenizer, and the life of the process around it.

Knows no torch: how a model is loaded is handed in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import grpc

from uag.model.v1 import model_pb2 as pb
from uag.model.v1 import model_pb2_grpc
from uag_common.model import Model
from uag_common.model_settings import ModelServiceSettings
from uag_common.ranks.leader import Ranks
from uag_common.rpc.loaded_model import LoadedModel, ModelSlot
from uag_common.rpc.metadata import Context
from uag_common.rpc.model_messages import encode_description, tokenizer_chunks
from uag_common.rpc.server import RpcServer, StopSignal
from uag_common.settings import variable_name
from uag_common.telemetry.model_metrics import ModelMetrics
from uag_common.telemetry.telemetry import shown
from uag_common.worker import Worker

log = logging.getLogger(__name__)

MOST_WATCH_SECONDS = 1.0
"""Between two looks at the running step."""

MODEL_SERVICE = pb.DESCRIPTOR.services_by_name["ModelService"].full_name


class ModelServicer(model_pb2_grpc.ModelServiceServicer):
    """Serves `uag.model.v1.ModelService`."""

    def __init__(self, slot: ModelSlot) -> None:
        self._slot = slot

    async def DescribeModel(  # noqa: N802 - named by the contract
        self,
        request: pb.DescribeModelRequest,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> pb.DescribeModelResponse:
        description = self._slot.loaded.model.description
        return pb.DescribeModelResponse(model=encode_description(description))

    async def GetTokenizer(  # noqa: N802
        self,
        request: pb.GetTokenizerRequest,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.GetTokenizerResponse]:
        for chunk in tokenizer_chunks(self._slot.loaded.model.tokenizer_files):
            yield chunk

    async def GetLoad(  # noqa: N802
        self,
        request: pb.GetLoadRequest,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> pb.GetLoadResponse:
        loaded = self._slot.loaded
        return pb.GetLoadResponse(
            open_sessions=loaded.admission.open_sessions,
            max_sessions=loaded.admission.max_sessions,
            pending_steps=loaded.batcher.pending,
            kept_prefixes=loaded.prefixes.kept_prefixes,
            kept_prefix_bytes=loaded.prefixes.kept_bytes,
            waiting_sessions=loaded.batcher.waiting,
            kv_blocks=loaded.model.blocks.total,
            kv_blocks_used=loaded.model.blocks.used,
        )


async def run_model_service(
    role: str,
    settings: ModelServiceSettings,
    service_name: str,
    add_service: Callable[[grpc.aio.Server, ModelSlot], None],
    load_model: Callable[[], Model],
    ranks: Ranks,
) -> None:
    """Serves until told to stop. The port answers, NOT_SERVING, while the model loads. Raises
    StartError if a port cannot be had or the model cannot be loaded, and RankLostError if one of
    the `ranks` is lost."""
    with shown(role, settings) as telemetry:
        server, slot = RpcServer((service_name, MODEL_SERVICE), telemetry), ModelSlot()
        model_pb2_grpc.add_ModelServiceServicer_to_server(ModelServicer(slot), server.grpc)
        add_service(server.grpc, slot)
        port = await server.start(settings.listen, variable_name(type(settings), "listen"))
        metrics = ModelMetrics(telemetry.registry)
        worker = Worker("model")
        watching = asyncio.ensure_future(_watch(slot, settings.stalled_seconds, server, ranks))
        try:
            stop = StopSignal(follow_stdin=settings.stop_with_parent)
            loading = asyncio.ensure_future(worker.run(load_model))
            if not await stop.before(loading, watching):
                return
            if loading.done() and (error := loading.exception()) is not None:
                await ranks.settle(error)
            if watching.done():
                watching.result()
            model = loading.result()
            slot.fill(LoadedModel.of(model, worker, settings, metrics, telemetry.tracer))
            await server.set_serving(True)
            log.info("serving %s on port %d", model.description.model_id, port)
            if await stop.before(watching):
                # Watching never ends but by a lost rank or a bug: let it be seen.
                watching.result()
        finally:
            await server.stop(0 if watching.done() else settings.drain_seconds)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            worker.close()


async def _watch(
    slot: ModelSlot, stalled_seconds: float, server: RpcServer, ranks: Ranks
) -> NoReturn:
    """Tells by health while one step of the model has been running for too long: a forward pass
    that hangs ends with its process only. Raises RankLostError if that or its end is seen of one of
    several that share the model."""
    stalled = False
    while True:
        seconds = slot.step_seconds
        if seconds > stalled_seconds:
            ranks.hangs(seconds)
        if seconds > stalled_seconds and not stalled:
            log.error("one step of the model has been running for %.1f s: not alive", seconds)
        elif stalled and seconds <= stalled_seconds:
            log.info("the step of the model that took too long has ended: alive again")
        stalled = seconds > stalled_seconds
        server.set_live(not stalled)
        await ranks.intact(min(MOST_WATCH_SECONDS, stalled_seconds / 4))
