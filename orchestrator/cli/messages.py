"""Between the messages of `uag.orchestrator.v1` and the plain values of a request, client side."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict

from orchestrator.events import (
    CommittedToken,
    Degraded,
    Delta,
    Event,
    Finished,
    FinishReason,
    SpeculationFigures,
    Started,
    TimeFigures,
    TokenSource,
)
from orchestrator.request import AnswerRequest, ChatPrompt, TextPrompt
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.errors import InvalidRequestError

V = TypeVar("V")

_SOURCES = {
    pb.TOKEN_SOURCE_TARGET: TokenSource.TARGET,
    pb.TOKEN_SOURCE_DRAFT: TokenSource.DRAFT,
    pb.TOKEN_SOURCE_CORRECTION: TokenSource.CORRECTION,
    pb.TOKEN_SOURCE_BONUS: TokenSource.BONUS,
}
_REASONS = {
    pb.FINISH_REASON_EOS: FinishReason.EOS,
    pb.FINISH_REASON_MAX_TOKENS: FinishReason.MAX_TOKENS,
    pb.FINISH_REASON_CONTEXT_LIMIT: FinishReason.CONTEXT_LIMIT,
}


def encode_request(request: AnswerRequest) -> pb.GenerateRequest:
    """Raises InvalidRequestError for a number that the contract has no room for."""
    for name, number in (
        ("max_new_tokens", request.max_new_tokens),
        ("speculation.draft_tokens", request.draft_tokens),
    ):
        if number is not None and not -(1 << 31) <= number < 1 << 31:
            raise InvalidRequestError(name, f"is {number}, far more than any model can do")
    message = pb.GenerateRequest(max_new_tokens=request.max_new_tokens)
    match request.prompt:
        case TextPrompt(text):
            message.text = text
        case ChatPrompt(messages):
            message.chat.messages.extend(
                pb.ChatMessage(role=item.role, content=item.content) for item in messages
            )
    if request.draft_tokens is not None:
        message.speculation.draft_tokens = request.draft_tokens
    return message


def decode_event(response: pb.GenerateResponse) -> Event:
    match response.WhichOneof("event"):
        case "started":
            return _plain(Started, response.started)
        case "delta":
            return _decode_delta(response.delta)
        case _:
            return _decode_finished(response.finished)


def json_line(response: pb.GenerateResponse) -> str:
    """The message in protobuf's JSON form, with the field names of the contract."""
    content = MessageToDict(response, preserving_proto_field_name=True)
    return json.dumps(content, ensure_ascii=False)


def _decode_delta(delta: pb.Delta) -> Delta:
    tokens = (
        # A server newer than this client may name a source that it does not know.
        CommittedToken(
            token.id, _SOURCES.get(token.source, TokenSource.TARGET), token.round, token.text
        )
        for token in delta.tokens
    )
    return Delta(tuple(tokens))


def _decode_finished(finished: pb.Finished) -> Finished:
    return Finished(
        reason=_REASONS[finished.finish_reason],
        prompt_tokens=finished.usage.prompt_tokens,
        completion_tokens=finished.usage.completion_tokens,
        speculation=_plain(SpeculationFigures, finished.speculation),
        time=_plain(TimeFigures, finished.time),
        degraded=_plain(Degraded, finished.degraded) if finished.HasField("degraded") else None,
    )


def _plain(kind: type[V], message: Any) -> V:
    """The dataclass whose fields are named as the message's; repeated fields become tuples."""
    values = {item.name: getattr(message, item.name) for item in fields(kind)}  # type: ignore[arg-type]
    repeated = {"accepted_lengths"} & values.keys()
    return kind(**values | {name: tuple(values[name]) for name in repeated})
