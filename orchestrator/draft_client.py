"""Speaks `uag.draft.v1` for the round loop."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from orchestrator.sessions import DraftCommand, Drafted, ExchangeTime
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag_common.errors import PeerRefusedError
from uag_common.model import ModelDescription
from uag_common.rpc.model_messages import decode_time, encode_version
from uag_common.rpc.stream import SessionStream

DRAFT_SERVICE = pb.DESCRIPTOR.services_by_name["DraftService"].full_name


class DraftClient:
    """One session of the draft service at `peer`, which holds the `model`."""

    def __init__(
        self, peer: str, channel: grpc.aio.Channel, model: ModelDescription, timeout_seconds: float
    ) -> None:
        self._peer = peer
        self._stream: SessionStream[pb.SessionRequest, pb.SessionResponse] = SessionStream(
            peer, draft_pb2_grpc.DraftServiceStub(channel).Session()
        )
        self._tokenizer_sha256 = model.tokenizer_sha256
        self._timeout_seconds = timeout_seconds

    async def open(self, context_ids: Sequence[int]) -> ExchangeTime:
        message = pb.Open(context_ids=context_ids, tokenizer_sha256=self._tokenizer_sha256)
        request = pb.SessionRequest(open=message)
        response, seconds = await self._stream.exchange(request, self._timeout_seconds)
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
        )
        request = pb.SessionRequest(propose=message)
        response, seconds = await self._stream.exchange(request, self._timeout_seconds)
        proposed = response.proposed
        if proposed.round != command.round:
            raise PeerRefusedError(f"{self._peer} answered another round than {command.round}")
        return Drafted(
            # No more than was asked for counts as proposed.
            ids=tuple(token.id for token in proposed.tokens[: command.max_tokens]),
            time=ExchangeTime(seconds, decode_time(proposed.time)),
        )

    def close(self) -> None:
        self._stream.close()
