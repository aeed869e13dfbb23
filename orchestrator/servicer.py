"""The gRPC edge of the orchestrator: decode, one call, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

from orchestrator.answering import Answering
from orchestrator.events import Delta, Event, Finished, FinishReason, Started, TokenSource
from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import AnswerRequest, ChatPrompt, TextPrompt
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag_common.errors import InvalidRequestError
from uag_common.rpc.errors import Context

ORCHESTRATOR = pb.DESCRIPTOR.services_by_name["Orchestrator"].full_name

_SOURCE_TO_PB = {
    TokenSource.TARGET: pb.TOKEN_SOURCE_TARGET,
    TokenSource.DRAFT: pb.TOKEN_SOURCE_DRAFT,
    TokenSource.CORRECTION: pb.TOKEN_SOURCE_CORRECTION,
    TokenSource.BONUS: pb.TOKEN_SOURCE_BONUS,
}
_REASON_TO_PB = {
    FinishReason.EOS: pb.FINISH_REASON_EOS,
    FinishReason.MAX_TOKENS: pb.FINISH_REASON_MAX_TOKENS,
    FinishReason.CONTEXT_LIMIT: pb.FINISH_REASON_CONTEXT_LIMIT,
}


class OrchestratorServicer(orchestrator_pb2_grpc.OrchestratorServicer):
    """Serves `uag.orchestrator.v1.Orchestrator`."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    async def Generate(  # noqa: N802 - named by the contract
        self,
        request: pb.GenerateRequest,
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.GenerateResponse]:
        async with aclosing(self._answering.answer(_decode(request))) as events:
            async for event in events:
                yield _encode(event)


def _decode(request: pb.GenerateRequest) -> AnswerRequest:
    speculation = request.speculation
    return AnswerRequest(
        prompt=_decode_prompt(request),
        max_new_tokens=request.max_new_tokens if request.HasField("max_new_tokens") else None,
        draft_tokens=speculation.draft_tokens if speculation.HasField("draft_tokens") else None,
    )


def _decode_prompt(request: pb.GenerateRequest) -> TextPrompt | ChatPrompt:
    match request.WhichOneof("prompt"):
        case "text":
            return TextPrompt(request.text)
        case "chat":
            messages = (ChatMessage(m.role, m.content) for m in request.chat.messages)
            return ChatPrompt(tuple(messages))
        case _:
            raise InvalidRequestError("prompt", "give `text` or `chat`")


def _encode(event: Event) -> pb.GenerateResponse:
    match event:
        case Started():
            return pb.GenerateResponse(started=pb.Started(**asdict(event)))
        case Delta():
            tokens = (
                pb.Token(
                    id=token.id,
                    source=_SOURCE_TO_PB[token.source],
                    round=token.round,
                    text=token.text,
                )
                for token in event.tokens
            )
            return pb.GenerateResponse(delta=pb.Delta(text=event.text, tokens=tokens))
        case Finished():
            return pb.GenerateResponse(finished=_encode_finished(event))


def _encode_finished(event: Finished) -> pb.Finished:
    message = pb.Finished(
        finish_reason=_REASON_TO_PB[event.reason],
        usage=pb.Usage(
            prompt_tokens=event.prompt_tokens, completion_tokens=event.completion_tokens
        ),
        speculation=pb.SpeculationFigures(**asdict(event.speculation)),
        time=pb.TimeFigures(**asdict(event.time)),
    )
    if event.degraded is not None:
        message.degraded.CopyFrom(pb.Degraded(**asdict(event.degraded)))
    return message
