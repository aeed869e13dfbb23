"""A draft service that says what a test wants, over a real socket, in the test's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.draft_client import DRAFT_SERVICE
from orchestrator.side import Side
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag.model.v1 import model_pb2_grpc
from uag_common.engine.load import TOKENIZER_FILES
from uag_common.model import (
    ModelDescription,
    Rollback,
    TokenizerFile,
    TokenSequence,
    tokenizer_sha256,
)
from uag_common.models.roles import read_roles
from uag_common.rpc.errors import Context
from uag_common.rpc.model_service import LoadedModel, ModelServicer, ModelSlot
from uag_common.rpc.server import RpcServer
from uag_common.worker import Worker

CONTEXT_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class Turn:
    """What a script is asked."""

    context_ids: tuple[int, ...]
    spelled: bytes
    """What the context spells after the session's first ids (a BOS or a rendered chat)."""
    round: int
    max_tokens: int


Script = Callable[[Turn], Sequence[int]]


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

    def new_sequence(self) -> TokenSequence:
        raise NotImplementedError("a scripted draft runs no model")

    @property
    def vocabulary(self) -> Vocabulary:
        return Side.build(self.description, self.tokenizer_files).vocabulary


class ScriptedServicer(draft_pb2_grpc.DraftServiceServicer):
    """Keeps the context as a real one does, and asks the script for the rest."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.script: Script = lambda _: ()
        self.delay_seconds = 0.0
        self.open_sessions = 0
        self._vocabulary = vocabulary

    async def Session(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.SessionRequest],
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.SessionResponse]:
        self.open_sessions += 1
        try:
            async for response in self._answers(request_iterator):
                yield response
        finally:
            self.open_sessions -= 1

    async def _answers(
        self, request_iterator: AsyncIterator[pb.SessionRequest]
    ) -> AsyncIterator[pb.SessionResponse]:
        ids: list[int] = []
        async for request in request_iterator:
            if request.HasField("open"):
                ids = list(request.open.context_ids)
                yield pb.SessionResponse(opened=pb.Opened())
                continue
            command = request.propose
            ids[command.keep :] = command.append_ids
            await asyncio.sleep(self.delay_seconds)
            drafted = list(self.script(self._turn(ids, command)))
            ids.extend(drafted)
            tokens = [pb.DraftToken(id=item, probability=0.5) for item in drafted]
            yield pb.SessionResponse(proposed=pb.Proposed(round=command.round, tokens=tokens))

    def _turn(self, ids: Sequence[int], command: pb.Propose) -> Turn:
        spelled = b"".join(self._vocabulary.piece(item) or b"" for item in ids)
        return Turn(tuple(ids), spelled, command.round, command.max_tokens)


class ScriptedDraft:
    """A running scripted draft service; change `script` between requests."""

    def __init__(self, model: TokenizerOnly) -> None:
        self.vocabulary = model.vocabulary
        self.servicer = ScriptedServicer(self.vocabulary)
        self.address = ""
        self._model = model
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: grpc.aio.Server | None = None

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(30)

    async def _serve(self) -> None:
        server, slot = RpcServer((DRAFT_SERVICE,)), ModelSlot()
        slot.fill(LoadedModel(self._model, Worker("unused")))
        model_pb2_grpc.add_ModelServiceServicer_to_server(ModelServicer(slot), server.grpc)
        draft_pb2_grpc.add_DraftServiceServicer_to_server(self.servicer, server.grpc)
        port = await server.start("127.0.0.1:0", "listen")
        await server.set_serving(True)
        self.address, self._server = f"127.0.0.1:{port}", server.grpc

    def stop(self) -> None:
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(0), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()


@contextmanager
def scripted_draft(folder: Path, vocabulary_size: int) -> Iterator[ScriptedDraft]:
    """Serves the tokenizer of `folder` and proposes by script."""
    draft = ScriptedDraft(TokenizerOnly.read(folder, vocabulary_size))
    draft.start()
    try:
        yield draft
    finally:
        draft.stop()


def perfect(vocabulary: Vocabulary, whole: bytes) -> Script:
    """Always knows how the text goes on."""

    def script(turn: Turn) -> Sequence[int]:
        rest = whole[len(turn.spelled) :]
        return spans(vocabulary, rest).ids[: turn.max_tokens]

    return script
