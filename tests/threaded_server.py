"""A service over a real socket, in the test's own process: described as a model, without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.side import Side
from tests.unseen import unseen_model
from uag.model.v1 import model_pb2_grpc
from uag_common.admission import Admission
from uag_common.decoding import Choice, Decoding
from uag_common.engine.load import TOKENIZER_FILES
from uag_common.kv.pool import BlockPool
from uag_common.model import (
    Logits,
    ModelDescription,
    Part,
    Rollback,
    TokenChooser,
    TokenizerFile,
    TokenSequence,
    tokenizer_sha256,
)
from uag_common.models.roles import read_roles
from uag_common.prefix_cache import PrefixCache
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_service import ModelServicer
from uag_common.rpc.server import RpcServer
from uag_common.telemetry.telemetry import Telemetry
from uag_common.worker import Worker

CONTEXT_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class TokenizerOnly:
    """A model that is only described: its ids and files are real, it has no weights."""

    description: ModelDescription
    tokenizer_files: tuple[TokenizerFile, ...]

    @classmethod
    def read(cls, folder: Path, vocabulary_size: int) -> TokenizerOnly:
        present = (folder / name for name in TOKENIZER_FILES if (folder / name).is_file())
        files = tuple(TokenizerFile(path.name, path.read_bytes()) for path in present)
        description = ModelDescription(
            model_id="scripted",
            revision="",
            architecture="Scripted",
            tokenizer_sha256=tokenizer_sha256(files),
            vocabulary_size=vocabulary_size,
            context_length=CONTEXT_LENGTH,
            dtype="float32",
            device="cpu",
            rollback=Rollback.TRUNCATE,
            parameter_count=0,
            weight_bytes=0,
            roles=read_roles(folder, vocabulary_size),
        )
        return cls(description, files)

    blocks = BlockPool(1, 1)
    most_parts = 1

    def new_sequence(self) -> TokenSequence:
        raise NotImplementedError("a scripted draft runs no model")

    def run(self, parts: Sequence[Part]) -> Sequence[Logits]:
        raise NotImplementedError("a scripted draft runs no model")

    def new_chooser(self, decoding: Decoding, answer_start: int) -> TokenChooser:
        raise NotImplementedError("a scripted draft runs no model")

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> Sequence[Choice]:
        raise NotImplementedError("a scripted draft runs no model")

    @property
    def vocabulary(self) -> Vocabulary:
        return Side.build(self.description, self.tokenizer_files).vocabulary


@contextmanager
def threaded_server(
    name: str, model: TokenizerOnly, add_service: Callable[[grpc.aio.Server], None]
) -> Iterator[str]:
    """Serves the model's description and the service of that name; yields the address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve() -> tuple[RpcServer, int]:
        server, slot = RpcServer((name,), Telemetry.unseen("test")), ModelSlot()
        slot.fill(unseen_model(model, Worker("unused"), Admission(256, 300.0), PrefixCache(0)))
        model_pb2_grpc.add_ModelServiceServicer_to_server(ModelServicer(slot), server.grpc)
        add_service(server.grpc)
        port = await server.start("127.0.0.1:0", "listen")
        await server.set_serving(True)
        return server, port

    server, port = asyncio.run_coroutine_threadsafe(serve(), loop).result(30)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(0), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
