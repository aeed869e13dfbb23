"""The gRPC edge of the verify service: decode, one call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import closing

from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.decoding import Decoding
from uag_common.errors import InvalidRequestError
from uag_common.rpc.decoding_messages import (
    decode_constraint,
    decode_prefix,
    decode_sampling,
    encode_choice,
)
from uag_common.rpc.loaded_model import LoadedModel, ModelSlot
from uag_common.rpc.metadata import Context
from uag_common.rpc.model_messages import decode_version, encode_time
from uag_common.telemetry.attributes import (
    ACCEPTED,
    CACHE_LENGTH,
    CACHED_TOKENS,
    PROPOSED,
    ROUND,
)
from uag_common.telemetry.names import INVALID_COMMAND, VERIFY, VERIFY_OPEN
from uag_common.telemetry.spans import tell
from uag_common.work_pool import WorkPool
from verify_service.open_command import OpenCommand
from verify_service.session import VerifySession

VERIFY_SERVICE = pb.DESCRIPTOR.services_by_name["VerifyService"].full_name
METHOD = f"{VERIFY_SERVICE}/Session"

_SPANS: Mapping[str | None, str] = {"open": VERIFY_OPEN, "verify": VERIFY}


class VerifyServicer(verify_pb2_grpc.VerifyServiceServicer):
    """Serves `uag.verify.v1.VerifyService`."""

    def __init__(self, slot: ModelSlot) -> None:
        self._slot = slot
        # A request may open sessions for many answers at once.
        self._compilations = WorkPool("constraints", threads=4, most_waiting=256)

    async def Session(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.SessionRequest],
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.SessionResponse]:
        loaded = self._slot.loaded
        async with loaded.session() as room:
            with closing(self._new_session(loaded)) as session:
                async for request in request_iterator:
                    with room.command(_span(request), METHOD, request.traceparent):
                        answer = await _answer(loaded, session, request)
                        room.hold(session.context_length)
                    yield answer

    def _new_session(self, loaded: LoadedModel) -> VerifySession:
        return VerifySession(loaded.model, loaded.batcher, loaded.prefixes, self._compilations)


def _span(request: pb.SessionRequest) -> str:
    return _SPANS.get(request.WhichOneof("command"), INVALID_COMMAND)


async def _answer(
    loaded: LoadedModel, session: VerifySession, request: pb.SessionRequest
) -> pb.SessionResponse:
    match request.WhichOneof("command"):
        case "open":
            loaded.check_tokenizer(request.open.tokenizer_sha256)
            return pb.SessionResponse(opened=await _open(loaded, session, request.open))
        case "verify":
            return pb.SessionResponse(verified=await _verify(session, request.verify))
        case _:
            raise InvalidRequestError("command", "must be `open` or `verify`")


async def _open(loaded: LoadedModel, session: VerifySession, message: pb.Open) -> pb.Opened:
    command = _decode(message)
    done = await session.open(command)
    loaded.metrics.opened(len(command.prompt_ids), done.value.cached_tokens)
    tell({CACHE_LENGTH: session.context_length, CACHED_TOKENS: done.value.cached_tokens})
    return pb.Opened(
        first=encode_choice(done.value.first),
        time=encode_time(done.time),
        cached_tokens=done.value.cached_tokens,
        prompt=(encode_choice(choice) for choice in done.value.prompt),
    )


async def _verify(session: VerifySession, message: pb.Verify) -> pb.Verified:
    tell({ROUND: message.round, PROPOSED: len(message.candidate_ids)})
    committed = decode_version(message.committed)
    done = await session.verify(committed, tuple(message.candidate_ids))
    accepted = done.value.accepted
    tell({ACCEPTED: len(accepted), CACHE_LENGTH: session.context_length})
    return pb.Verified(
        round=message.round,
        accepted=len(accepted),
        next=encode_choice(done.value.next),
        time=encode_time(done.time),
        # The caller knows their ids: only log-probabilities are news.
        accepted_tokens=(
            encode_choice(choice) for choice in accepted if choice.logprob is not None
        ),
    )


def _decode(message: pb.Open) -> OpenCommand:
    given = {field.name for field, _ in message.ListFields()}
    decoding = Decoding(
        sampling=decode_sampling(message.sampling),
        min_new_tokens=message.min_new_tokens,
        end_ids=tuple(message.end_ids),
        constraint=(
            decode_constraint(message.constraint, "open.constraint")
            if "constraint" in given
            else None
        ),
        top_logprobs=message.top_logprobs if "top_logprobs" in given else None,
    )
    prompt_ids = tuple(message.prompt_ids)
    return OpenCommand(
        prompt_ids=prompt_ids,
        answer_start=message.answer_start if "answer_start" in given else len(prompt_ids),
        decoding=decoding,
        prompt_top_logprobs=message.prompt_top_logprobs if "prompt_top_logprobs" in given else None,
        prefix=decode_prefix(message.prefix),
        priority=message.priority,
    )
