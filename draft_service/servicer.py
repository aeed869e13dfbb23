"""The gRPC edge of the draft service: decode, one call, encode."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, closing

from draft_service.commands import OpenCommand, ProposeCommand
from draft_service.drafter import ProposalEnd
from draft_service.drafting import DraftToken
from draft_service.session import DraftSession, Proposal
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag_common.errors import InvalidRequestError
from uag_common.rpc.decoding_messages import decode_position, decode_prefix, decode_sampling
from uag_common.rpc.loaded_model import LoadedModel, ModelSlot
from uag_common.rpc.metadata import Context
from uag_common.rpc.model_messages import decode_version, encode_time
from uag_common.rpc.read_ahead import ReadAhead
from uag_common.telemetry.attributes import (
    APPENDED,
    CACHE_LENGTH,
    CACHED_TOKENS,
    DRAFTED,
    KEPT,
    PLANNED,
    PROPOSAL_END,
    ROLLED_BACK,
    ROUND,
)
from uag_common.telemetry.names import DRAFT_OPEN, DRAFT_PROPOSE, INVALID_COMMAND
from uag_common.telemetry.spans import tell

DRAFT_SERVICE = pb.DESCRIPTOR.services_by_name["DraftService"].full_name
METHOD = f"{DRAFT_SERVICE}/Session"

_SPANS: Mapping[str | None, str] = {"open": DRAFT_OPEN, "propose": DRAFT_PROPOSE}

_END_TO_PB = {
    ProposalEnd.LENGTH: pb.PROPOSAL_END_LENGTH,
    ProposalEnd.EOS: pb.PROPOSAL_END_EOS,
    ProposalEnd.LOW_PROBABILITY: pb.PROPOSAL_END_LOW_PROBABILITY,
    ProposalEnd.CONTEXT_LIMIT: pb.PROPOSAL_END_CONTEXT_LIMIT,
    ProposalEnd.SUPERSEDED: pb.PROPOSAL_END_SUPERSEDED,
}


class DraftServicer(draft_pb2_grpc.DraftServiceServicer):
    """Serves `uag.draft.v1.DraftService`."""

    def __init__(self, slot: ModelSlot, min_probability: float) -> None:
        self._slot = slot
        self._min_probability = min_probability

    async def Session(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.SessionRequest],
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.SessionResponse]:
        loaded = self._slot.loaded
        async with loaded.session() as room:
            with closing(DraftSession(loaded.model, loaded.batcher, loaded.prefixes)) as session:
                async with aclosing(ReadAhead(request_iterator)) as requests:
                    while (read := await requests.next()) is not None:
                        request, superseded = read
                        last: pb.SessionResponse | None = None
                        with room.command(_span(request), METHOD, request.traceparent):
                            answers = self._answers(loaded, session, request, superseded)
                            async with aclosing(answers):
                                async for answer in answers:
                                    if _ends(answer):
                                        last = answer
                                    else:
                                        yield answer
                            room.hold(session.context_length)
                        if last is not None:
                            # Outside of its span, which tells of the work and not of the way back.
                            yield last

    async def _answers(
        self,
        loaded: LoadedModel,
        session: DraftSession,
        request: pb.SessionRequest,
        superseded: Callable[[], bool],
    ) -> AsyncGenerator[pb.SessionResponse, None]:
        match request.WhichOneof("command"):
            case "open":
                loaded.check_tokenizer(request.open.tokenizer_sha256)
                opened = await _open(loaded, session, _decode_open(request.open))
                yield pb.SessionResponse(opened=opened)
            case "propose":
                message = request.propose
                tell({ROUND: message.round})
                told = _propose(session, self._decode_propose(message), superseded)
                async with aclosing(told):
                    async for each in told:
                        yield pb.SessionResponse(proposed=_encode(message.round, each))
            case _:
                raise InvalidRequestError("command", "must be `open` or `propose`")

    def _decode_propose(self, message: pb.Propose) -> ProposeCommand:
        given = message.HasField("min_probability")
        placed = message.HasField("position")
        return ProposeCommand(
            keep=message.keep,
            kept=decode_version(message.kept),
            append_ids=tuple(message.append_ids),
            max_tokens=message.max_tokens,
            min_probability=message.min_probability if given else self._min_probability,
            position=decode_position(message.position) if placed else None,
            stream=message.stream,
            first_tokens=message.first_tokens,
        )


def _ends(answer: pb.SessionResponse) -> bool:
    """Whether a command has no more answers than this."""
    return answer.HasField("opened") or bool(answer.proposed.end)


def _span(request: pb.SessionRequest) -> str:
    return _SPANS.get(request.WhichOneof("command"), INVALID_COMMAND)


async def _open(loaded: LoadedModel, session: DraftSession, command: OpenCommand) -> pb.Opened:
    done = await session.open(command)
    loaded.metrics.opened(len(command.context_ids), done.value)
    tell({CACHE_LENGTH: session.context_length, CACHED_TOKENS: done.value})
    return pb.Opened(time=encode_time(done.time), cached_tokens=done.value)


async def _propose(
    session: DraftSession, command: ProposeCommand, superseded: Callable[[], bool]
) -> AsyncGenerator[tuple[DraftToken, ...] | Proposal, None]:
    tell({KEPT: command.keep, APPENDED: len(command.append_ids), PLANNED: command.max_tokens})
    if not command.stream:
        proposal = await session.propose(command, superseded)
        _tell_end(session, proposal, len(proposal.tokens))
        yield proposal
        return
    drafted = 0
    async with aclosing(session.stream(command, superseded)) as told:
        async for each in told:
            if isinstance(each, Proposal):
                _tell_end(session, each, drafted + len(each.tokens))
            else:
                drafted += len(each)
            yield each


def _tell_end(session: DraftSession, proposal: Proposal, drafted: int) -> None:
    tell(
        {
            DRAFTED: drafted,
            ROLLED_BACK: proposal.rolled_back,
            PROPOSAL_END: proposal.end.value,
            CACHE_LENGTH: session.context_length,
        }
    )


def _decode_open(message: pb.Open) -> OpenCommand:
    context_ids = tuple(message.context_ids)
    return OpenCommand(
        context_ids=context_ids,
        answer_start=(
            message.answer_start if message.HasField("answer_start") else len(context_ids)
        ),
        sampling=decode_sampling(message.sampling),
        prefix=decode_prefix(message.prefix),
        priority=message.priority,
    )


def _encode(round_number: int, told: tuple[DraftToken, ...] | Proposal) -> pb.Proposed:
    if not isinstance(told, Proposal):
        return pb.Proposed(round=round_number, tokens=map(_encode_token, told))
    return pb.Proposed(
        round=round_number,
        tokens=map(_encode_token, told.tokens),
        end=_END_TO_PB[told.end],
        time=encode_time(told.time),
    )


def _encode_token(token: DraftToken) -> pb.DraftToken:
    return pb.DraftToken(id=token.id, probability=token.probability)
