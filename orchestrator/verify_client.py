"""Speaks `uag.verify.v1` for the round loop."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from orchestrator.sessions import Chosen, ExchangeTime
from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.context import ContextVersion
from uag_common.errors import PeerRefusedError, PeerUnavailableError, StaleContextError
from uag_common.model import ModelDescription
from uag_common.rpc.model_messages import decode_time, encode_version
from uag_common.rpc.stream import SessionStream

VERIFY_SERVICE = pb.DESCRIPTOR.services_by_name["VerifyService"].full_name


class VerifyClient:
    """One session of the verify service at `peer`, which holds the `model`."""

    def __init__(
        self, peer: str, channel: grpc.aio.Channel, model: ModelDescription, timeout_seconds: float
    ) -> None:
        self._peer = peer
        self._stream: SessionStream[pb.SessionRequest, pb.SessionResponse] = SessionStream(
            peer, verify_pb2_grpc.VerifyServiceStub(channel).Session()
        )
        self._tokenizer_sha256 = model.tokenizer_sha256
        self._vocabulary_size = model.vocabulary_size
        self._timeout_seconds = timeout_seconds

    async def open(self, prompt_ids: Sequence[int]) -> Chosen:
        message = pb.Open(prompt_ids=prompt_ids, tokenizer_sha256=self._tokenizer_sha256)
        response, seconds = await self._exchange(pb.SessionRequest(open=message))
        if not response.HasField("opened"):
            raise PeerRefusedError(f"{self._peer} did not answer `open` with `opened`")
        opened = response.opened
        self._check_id(opened.first.id)
        return Chosen(0, opened.first.id, ExchangeTime(seconds, decode_time(opened.time)))

    async def verify(
        self, round_number: int, committed: ContextVersion, candidates: Sequence[int]
    ) -> Chosen:
        message = pb.Verify(
            round=round_number, committed=encode_version(committed), candidate_ids=candidates
        )
        response, seconds = await self._exchange(pb.SessionRequest(verify=message))
        verified = response.verified
        if verified.round != round_number or verified.accepted > len(candidates):
            raise PeerRefusedError(f"{self._peer} answered another round than {round_number}")
        self._check_id(verified.next.id)
        time_spent = ExchangeTime(seconds, decode_time(verified.time))
        return Chosen(verified.accepted, verified.next.id, time_spent)

    def _check_id(self, token_id: int) -> None:
        if token_id >= self._vocabulary_size:
            raise PeerRefusedError(
                f"{self._peer} chose {token_id}, outside its vocabulary of {self._vocabulary_size}"
            )

    async def _exchange(self, request: pb.SessionRequest) -> tuple[pb.SessionResponse, float]:
        try:
            return await self._stream.exchange(request, self._timeout_seconds)
        except StaleContextError as error:
            # The service was restarted, or its model changed: nothing that a client did wrong.
            raise PeerUnavailableError(str(error)) from error

    def close(self) -> None:
        self._stream.close()
