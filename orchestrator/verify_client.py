"""Speaks `uag.verify.v1` for the round loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from orchestrator.sessions import Chosen, ExchangeTime, Opened
from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.context import ContextVersion
from uag_common.decoding import Choice, Decoding, PrefixReuse
from uag_common.errors import (
    InvalidRequestError,
    PeerRefusedError,
    PeerUnavailableError,
    StaleContextError,
    UagError,
)
from uag_common.model import ModelDescription
from uag_common.rpc.decoding_messages import (
    decode_choice,
    encode_constraint,
    encode_prefix,
    encode_sampling,
)
from uag_common.rpc.model_messages import decode_time, encode_version
from uag_common.rpc.stream import CommandSpans, SessionStream
from uag_common.telemetry.names import VERIFY, VERIFY_OPEN

VERIFY_SERVICE = pb.DESCRIPTOR.services_by_name["VerifyService"].full_name


_CLIENT_FIELDS = (
    ("open.sampling", "sampling"),
    ("open.constraint", "constraint"),
    ("open.min_new_tokens", "stopping.min_new_tokens"),
    ("open.prompt_top_logprobs", "logprobs.prompt_top"),
)
"""What the target may find wrong when it runs: a constraint that leaves no token, say."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What a session is told when it opens; `prompt_top_logprobs` as `Decoding.top_logprobs`."""

    decoding: Decoding
    prompt_top_logprobs: int | None
    prefix: PrefixReuse
    priority: int


class VerifyClient:
    """One session of the verify service at `address`, which holds the `model`."""

    def __init__(
        self,
        address: str,
        channel: grpc.aio.Channel,
        model: ModelDescription,
        timeout_seconds: float,
        options: VerifyOptions,
    ) -> None:
        self._peer = f"verify service at {address}"
        self._options = options
        self._spans = CommandSpans(f"{VERIFY_SERVICE}/Session", address, model.model_id)
        self._stream: SessionStream[pb.SessionRequest, pb.SessionResponse] = SessionStream(
            self._peer, verify_pb2_grpc.VerifyServiceStub(channel).Session()
        )
        self._tokenizer_sha256 = model.tokenizer_sha256
        self._vocabulary_size = model.vocabulary_size
        self._timeout_seconds = timeout_seconds

    async def open(self, prompt_ids: Sequence[int]) -> Opened:
        options, decoding = self._options, self._options.decoding
        message = pb.Open(
            prompt_ids=prompt_ids,
            tokenizer_sha256=self._tokenizer_sha256,
            sampling=encode_sampling(decoding.sampling),
            min_new_tokens=decoding.min_new_tokens,
            end_ids=decoding.end_ids,
            constraint=encode_constraint(decoding.constraint),
            top_logprobs=decoding.top_logprobs,
            prompt_top_logprobs=options.prompt_top_logprobs,
            prefix=encode_prefix(options.prefix),
            priority=options.priority,
        )
        response, seconds = await self._exchange(VERIFY_OPEN, pb.SessionRequest(open=message))
        if not response.HasField("opened"):
            raise PeerRefusedError(f"{self._peer} did not answer `open` with `opened`")
        opened = response.opened
        prompt = tuple(self._choice(token) for token in opened.prompt)
        wanted = 0 if options.prompt_top_logprobs is None else len(prompt_ids) - 1
        if len(prompt) != wanted or opened.cached_tokens >= len(prompt_ids):
            raise PeerRefusedError(f"{self._peer} tells of another prompt than it was given")
        time_spent = ExchangeTime(seconds, decode_time(opened.time))
        return Opened(self._choice(opened.first), opened.cached_tokens, prompt, time_spent)

    async def verify(
        self, round_number: int, committed: ContextVersion, candidates: Sequence[int]
    ) -> Chosen:
        message = pb.Verify(
            round=round_number, committed=encode_version(committed), candidate_ids=candidates
        )
        response, seconds = await self._exchange(VERIFY, pb.SessionRequest(verify=message))
        verified = response.verified
        if verified.round != round_number or verified.accepted > len(candidates):
            raise PeerRefusedError(f"{self._peer} answered another round than {round_number}")
        time_spent = ExchangeTime(seconds, decode_time(verified.time))
        accepted = self._accepted(verified, candidates)
        return Chosen(accepted, self._choice(verified.next), time_spent)

    def _accepted(self, verified: pb.Verified, candidates: Sequence[int]) -> tuple[Choice, ...]:
        accepted = candidates[: verified.accepted]
        if self._options.decoding.top_logprobs is None:
            return tuple(Choice(token_id) for token_id in accepted)
        tokens = tuple(self._choice(token) for token in verified.accepted_tokens)
        if [token.id for token in tokens] != list(accepted):
            raise PeerRefusedError(f"{self._peer} accepted other ids than it was given")
        return tokens

    def _choice(self, token: pb.ChosenToken) -> Choice:
        self._check_id(token.id)
        return decode_choice(token)

    def _check_id(self, token_id: int) -> None:
        if token_id >= self._vocabulary_size:
            raise PeerRefusedError(
                f"{self._peer} chose {token_id}, outside its vocabulary of {self._vocabulary_size}"
            )

    async def _exchange(
        self, span: str, request: pb.SessionRequest
    ) -> tuple[pb.SessionResponse, float]:
        try:
            with self._spans.command(span) as request.traceparent:
                return await self._stream.exchange(request, self._timeout_seconds)
        except StaleContextError as error:
            # The service was restarted, or its model changed: nothing that a client did wrong.
            raise PeerUnavailableError(str(error)) from error
        except PeerRefusedError as error:
            raise _as_the_client_has_it(error) from error

    def close(self) -> None:
        self._stream.close()


def _as_the_client_has_it(error: PeerRefusedError) -> UagError:
    """A refusal of what came from the client as it stands, under the client's name for it."""
    refusal = error.refusal
    for inner, field in _CLIENT_FIELDS:
        if refusal is not None and refusal.field.startswith(inner):
            return InvalidRequestError(field + refusal.field.removeprefix(inner), refusal.problem)
    return error
