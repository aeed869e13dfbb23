"""Speaks `uag.verify.v1` for the round loop."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from orchestrator.sessions import Chosen, ExchangeTime
from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.context import ContextVersion
from uag_common.rpc.model_messages import decode_time, encode_version
from uag_common.rpc.stream import SessionStream


class VerifyClient:
    """One session of the verify service at `peer`; ids are of the tokenizer named by its hash."""

    def __init__(
        self, peer: str, channel: grpc.aio.Channel, tokenizer_sha256: str, timeout_seconds: float
    ) -> None:
        self._stream: SessionStream[pb.SessionRequest, pb.SessionResponse] = SessionStream(
            peer, verify_pb2_grpc.VerifyServiceStub(channel).Session()
        )
        self._tokenizer_sha256 = tokenizer_sha256
        self._timeout_seconds = timeout_seconds

    async def open(self, prompt_ids: Sequence[int]) -> Chosen:
        message = pb.Open(prompt_ids=prompt_ids, tokenizer_sha256=self._tokenizer_sha256)
        request = pb.SessionRequest(open=message)
        response, seconds = await self._stream.exchange(request, self._timeout_seconds)
        opened = response.opened
        return Chosen(0, opened.first.id, ExchangeTime(seconds, decode_time(opened.time)))

    async def verify(
        self, round_number: int, committed: ContextVersion, candidates: Sequence[int]
    ) -> Chosen:
        message = pb.Verify(
            round=round_number, committed=encode_version(committed), candidate_ids=candidates
        )
        request = pb.SessionRequest(verify=message)
        response, seconds = await self._stream.exchange(request, self._timeout_seconds)
        verified = response.verified
        time_spent = ExchangeTime(seconds, decode_time(verified.time))
        return Chosen(verified.accepted, verified.next.id, time_spent)

    def close(self) -> None:
        self._stream.close()
