"""Speaks `uag.draft.v1` for the round loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from orchestrator.sessions import DraftCommand, Drafted, ExchangeTime
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag_common.decoding import PrefixReuse, Sampling
from uag_common.errors import PeerRefusedError
from uag_common.model import ModelDescription
from uag_common.rpc.decoding_messages import encode_position, encode_prefix, encode_sampling
from uag_common.rpc.model_messages import decode_time, encode_version
from uag_common.rpc.stream import CommandSpans, SessionStream
from uag_common.telemetry.names import DRAFT_OPEN, DRAFT_PROPOSE

DRAFT_SERVICE = pb.DESCRIPTOR.services_by_name["DraftService"].full_name


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """What a session is told when it opens, and with each command; `min_probability` None leaves
    it to the service."""

    sampling: Sampling
    min_probability: float | None
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
        message = pb.Propose(
            round=command.round,
            keep=command.keep,
            kept=encode_version(command.kept),
            append_ids=command.append_ids,
            max_tokens=command.max_tokens,
            min_probability=self._options.min_probability,
            position=encode_position(command.position),
        )
        request = pb.SessionRequest(propose=message)
        response, seconds = await self._exchange(DRAFT_PROPOSE, request)
        proposed = response.proposed
        if proposed.round != command.round:
            raise PeerRefusedError(f"{self._peer} answered another round than {command.round}")
        return Drafted(
            # No more than was asked for counts as proposed.
            ids=tuple(token.id for token in proposed.tokens[: command.max_tokens]),
            time=ExchangeTime(seconds, decode_time(proposed.time)),
        )

    async def _exchange(
        self, span: str, request: pb.SessionRequest
    ) -> tuple[pb.SessionResponse, float]:
        with self._spans.command(span) as request.traceparent:
            return await self._stream.exchange(request, self._timeout_seconds)

    def close(self) -> None:
        self._stream.close()
