"""What the draft and the verify service have in common: a model that loads while the port answers,
its description, its tokenizer, and the life of the process around it.

Knows no torch: how a model is loaded is handed in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import grpc

from uag.model.v1 import model_pb2 as pb
from uag.model.v1 import model_pb2_grpc
from uag_common.admission import Admission
from uag_common.errors import PeerUnavailableError, StaleContextError
from uag_common.model import Model
from uag_common.model_settings import ModelServiceSettings
from uag_common.prefix_cache import PrefixCache
from uag_common.rpc.errors import Context
from uag_common.rpc.model_messages import encode_description, tokenizer_chunks
from uag_common.rpc.server import RpcServer, StopSignal
from uag_common.settings import variable_name
from uag_common.worker import Worker

log = logging.getLogger(__name__)

MEGABYTE = 1_000_000

MODEL_SERVICE = pb.DESCRIPTOR.services_by_name["ModelService"].full_name


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, the thread that runs it, and what its sessions share."""

    model: Model
    worker: Worker
    admission: Admission
    prefixes: PrefixCache

    def check_tokenizer(self, sha256: str) -> None:
        """Raises StaleContextError if a session's ids are of another tokenizer than the model's."""
        held = self.model.description.tokenizer_sha256
        if sha256 != held:
            raise StaleContextError(
                f"the ids are of tokenizer {sha256 or '(not told)'}, this service holds {held}; "
                "describe the model anew"
            )


class ModelSlot:
    """Empty until the model is loaded and has run a test step."""

    def __init__(self) -> None:
        self._loaded: LoadedModel | None = None

    def fill(self, loaded: LoadedModel) -> None:
        self._loaded = loaded

    @property
    def loaded(self) -> LoadedModel:
        """Raises PeerUnavailableError while the model loads."""
        if self._loaded is None:
            raise PeerUnavailableError("the model is still loading; watch health for SERVING")
        return self._loaded


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
            pending_steps=loaded.worker.pending,
            kept_prefixes=loaded.prefixes.kept_prefixes,
            kept_prefix_bytes=loaded.prefixes.kept_bytes,
        )


async def run_model_service(
    settings: ModelServiceSettings,
    service_name: str,
    add_service: Callable[[grpc.aio.Server, ModelSlot], None],
    load_model: Callable[[], Model],
) -> None:
    """Serves until told to stop. The port answers, NOT_SERVING, while the model loads. Raises
    StartError if the port cannot be had or the model cannot be loaded."""
    server, slot = RpcServer((service_name, MODEL_SERVICE)), ModelSlot()
    model_pb2_grpc.add_ModelServiceServicer_to_server(ModelServicer(slot), server.grpc)
    add_service(server.grpc, slot)
    port = await server.start(settings.listen, variable_name(type(settings), "listen"))
    stop = StopSignal(follow_stdin=settings.stop_with_parent)
    worker = Worker("model")
    try:
        loading = asyncio.ensure_future(worker.run(load_model))
        if not await stop.before(loading):
            return
        slot.fill(
            LoadedModel(
                model=loading.result().value,
                worker=worker,
                admission=Admission(settings.max_sessions, settings.idle_seconds),
                prefixes=PrefixCache(settings.prefix_cache_mb * MEGABYTE),
            )
        )
        await server.set_serving(True)
        log.info("serving %s on port %d", slot.loaded.model.description.model_id, port)
        await stop.wait()
    finally:
        await server.stop(settings.drain_seconds)
        worker.close()
