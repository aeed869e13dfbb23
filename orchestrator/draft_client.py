"""Speaks `uag.draft.v1` for the round loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from orchestrator.running_draft import RunningDraft
from orchestrator.sessions import DraftCommand, Drafted, ExchangeTime
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag_common.decoding import PrefixReuse, Sampling
from uag_common.errors import PeerRefusedError, UagError
from uag_common.model import ModelDescription
from uag_common.rpc.decoding_messages import encode_position, encode_prefix, encode_sampling
from uag_common.rpc.model_messages import decode_time, encode_version
from uag_common.rpc.stream import CommandSpans, SessionStream
from uag_common.telemetry.names import DRAFT_OPEN, DRAFT_PROPOSE

DRAFT_SERVICE = pb.DESCRIPTOR.services_by_name["DraftService"].full_name


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """What a session is told when it opens."""

    sampling: Sampling
    prefix: PrefixReuse
    priority: int


class DraftClient:
    """One session of the draft service at `address`, which holds the `model`."""

    def __init__(
        self,
        address: str,
        channel: grpc.aio.Channel,
        model: ModelDescription,
        timeout_seconds: float,
        options: DraftOptions,
    ) -> None:
        self._peer = f"draft service at {address}"
        self._options = options
        self._spans = CommandSpans(f"{DRAFT_SERVICE}/Session", address, model.model_id)
        self._stream: SessionStream[pb.SessionRequest, pb.SessionResponse] = SessionStream(
            self._peer, draft_pb2_grpc.DraftServiceStub(channel).Session()
        )
        self._tokenizer_sha256 = model.tokenizer_sha256
        self._timeout_seconds = timeout_seconds
        self._running: asyncio.Task[None] | None = None

    async def open(self, context_ids: Sequence[int], answer_start: int) -> ExchangeTime:
        message = pb.Open(
            context_ids=context_ids,
            tokenizer_sha256=self._tokenizer_sha256,
            sampling=encode_sampling(self._options.sampling),
            answer_start=answer_start,
            prefix=encode_prefix(self._options.prefix),
            priority=self._options.priority,
        )
        response, seconds = await self._exchange(DRAFT_OPEN, pb.SessionRequest(open=message))
        if not response.HasField("opened"):
            raise PeerRefusedError(f"{self._peer} did not answer `open` with `opened`")
        return ExchangeTime(seconds, decode_time(response.opened.time))

    async def propose(self, command: DraftCommand) -> Drafted:
        request = self._request(command, stream=False)
        began = time.perf_counter()
        with self._spans.command(DRAFT_PROPOSE) as request.traceparent:
            await self._stream.send(request, self._timeout_seconds)
            await self._rest_of_running()
            proposed = await self._proposed(command)
        spent = ExchangeTime(time.perf_counter() - began, decode_time(proposed.time))
        # No more than was asked for counts as proposed.
        tokens = proposed.tokens[: command.max_tokens]
        return Drafted(
            tuple(token.id for token in tokens), spent, tuple(token.probability for token in tokens)
        )

    def run(self, command: DraftCommand) -> RunningDraft:
        draft, before = RunningDraft(), self._running
        self._running = asyncio.ensure_future(self._run(command, draft, before))
        return draft

    async def _run(
        self, command: DraftCommand, draft: RunningDraft, before: asyncio.Task[None] | None
    ) -> None:
        request = self._request(command, stream=True)
        try:
            with self._spans.command(DRAFT_PROPOSE) as request.traceparent:
                await self._stream.send(request, self._timeout_seconds)
                if before is not None:
                    await before
                await self._follow(command, draft)
        except UagError as error:
            draft.fail(error)

    async def _follow(self, command: DraftCommand, draft: RunningDraft) -> None:
        """Until the service says that the proposal has ended."""
        while not draft.ended:
            proposed = await self._proposed(command)
            tokens = proposed.tokens[: command.max_tokens - len(draft.ids)]
            draft.add([token.id for token in tokens], [token.probability for token in tokens])
            if proposed.end:
                draft.end(decode_time(proposed.time))

    async def _rest_of_running(self) -> None:
        """A command ends what ran before it; answers come in the order of the commands."""
        if self._running is not None:
            await self._running
            self._running = None

    def _request(self, command: DraftCommand, *, stream: bool) -> pb.SessionRequest:
        message = pb.Propose(
            round=command.round,
            keep=command.keep,
            kept=encode_version(command.kept),
            append_ids=command.append_ids,
            max_tokens=command.max_tokens,
            min_probability=command.min_probability,
            position=encode_position(command.position),
            stream=stream,
            first_tokens=command.first_tokens,
        )
        return pb.SessionRequest(propose=message)

    async def _proposed(self, command: DraftCommand) -> pb.Proposed:
        response = await self._stream.receive(self._timeout_seconds)
        if response.proposed.round != command.round:
            raise PeerRefusedError(f"{self._peer} answered another round than {command.round}")
        return response.proposed

    async def _exchange(
        self, span: str, request: pb.SessionRequest
    ) -> tuple[pb.SessionResponse, float]:
        with self._spans.command(span) as request.traceparent:
            return await self._stream.exchange(request, self._timeout_seconds)

    def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
        self._stream.close()
