"""A draft service that says what a test wants, over a real socket, in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.draft_client import DRAFT_SERVICE
from tests.threaded_server import TokenizerOnly, threaded_server
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag_common.rpc.metadata import Context

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
    """A running scripted draft service; change `servicer.script` between requests."""

    def __init__(self, vocabulary: Vocabulary, servicer: ScriptedServicer, address: str) -> None:
        self.vocabulary = vocabulary
        self.servicer = servicer
        self.address = address


@contextmanager
def scripted_draft(folder: Path, vocabulary_size: int) -> Iterator[ScriptedDraft]:
    """Serves the tokenizer of `folder` and proposes by script."""
    model = TokenizerOnly.read(folder, vocabulary_size)
    vocabulary = model.vocabulary
    servicer = ScriptedServicer(vocabulary)
    add = draft_pb2_grpc.add_DraftServiceServicer_to_server
    with threaded_server(DRAFT_SERVICE, model, partial(add, servicer)) as address:
        yield ScriptedDraft(vocabulary, servicer, address)


def perfect(vocabulary: Vocabulary, whole: bytes) -> Script:
    """Always knows how the text goes on."""

    def script(turn: Turn) -> Sequence[int]:
        rest = whole[len(turn.spelled) :]
        return spans(vocabulary, rest).ids[: turn.max_tokens]

    return script
