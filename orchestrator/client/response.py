"""From the messages of the contract to plain values. What a newer server adds is passed over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

from orchestrator.client.answer import (
    Answer,
    Choice,
    Degraded,
    Delta,
    Event,
    Finished,
    FinishReason,
    PromptToken,
    SpeculationFigures,
    Started,
    TimeFigures,
    Token,
    TokenSource,
    TopToken,
    Usage,
)
from orchestrator.client.description import Models, Tokenization
from orchestrator.client.request import decode_options
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.rpc.model_messages import decode_description

V = TypeVar("V")

_SOURCES = {
    pb.TOKEN_SOURCE_TARGET: TokenSource.TARGET,
    pb.TOKEN_SOURCE_DRAFT: TokenSource.DRAFT,
    pb.TOKEN_SOURCE_CORRECTION: TokenSource.CORRECTION,
    pb.TOKEN_SOURCE_BONUS: TokenSource.BONUS,
    pb.TOKEN_SOURCE_LOOKUP: TokenSource.LOOKUP,
}
_REASONS = {
    pb.FINISH_REASON_EOS: FinishReason.EOS,
    pb.FINISH_REASON_MAX_TOKENS: FinishReason.MAX_TOKENS,
    pb.FINISH_REASON_CONTEXT_LIMIT: FinishReason.CONTEXT_LIMIT,
    pb.FINISH_REASON_STOP_SEQUENCE: FinishReason.STOP_SEQUENCE,
    pb.FINISH_REASON_STOP_TOKEN: FinishReason.STOP_TOKEN,
    pb.FINISH_REASON_TIME_LIMIT: FinishReason.TIME_LIMIT,
    pb.FINISH_REASON_CANCELLED: FinishReason.CANCELLED,
}


def decode_event(response: pb.GenerateResponse) -> Event | None:
    """None for a kind of event that this client does not know."""
    match response.WhichOneof("event"):
        case "started":
            return _started(response.started)
        case "delta":
            return Delta(response.delta.choice, response.delta.text, _tokens(response.delta.tokens))
        case "finished":
            return _finished(response.finished)
    return None


def decode_answer(response: pb.GenerateUnaryResponse) -> Answer:
    choices = (
        Choice(choice.text, _tokens(choice.tokens), _finished(choice.finished))
        for choice in response.choices
    )
    return Answer(_started(response.started), tuple(choices))


def decode_models(response: pb.DescribeModelResponse) -> Models:
    return Models(
        target=decode_description(response.target),
        draft=decode_description(response.draft) if response.HasField("draft") else None,
        chat_template=response.chat_template,
    )


def decode_tokenization(response: pb.TokenizeResponse) -> Tokenization:
    return Tokenization(tuple(response.ids), tuple(response.texts))


def _started(message: pb.Started) -> Started:
    return _plain(
        Started,
        message,
        parameters=decode_options(message.parameters),
        prompt=tuple(
            PromptToken(token.id, token.logprob, _top(token.top)) for token in message.prompt
        ),
    )


def _tokens(messages: Iterable[pb.Token]) -> tuple[Token, ...]:
    return tuple(
        _plain(
            Token,
            token,
            source=_SOURCES.get(token.source, TokenSource.UNKNOWN),
            logprob=token.logprob if token.HasField("logprob") else None,
            top=_top(token.top),
        )
        for token in messages
    )


def _top(messages: Iterable[pb.TopToken]) -> tuple[TopToken, ...]:
    return tuple(_plain(TopToken, token) for token in messages)


def _finished(message: pb.Finished) -> Finished:
    stop = message.WhichOneof("stop")
    return Finished(
        choice=message.choice,
        reason=_REASONS.get(message.finish_reason, FinishReason.UNKNOWN),
        usage=_plain(Usage, message.usage),
        speculation=_plain(SpeculationFigures, message.speculation),
        time=_plain(TimeFigures, message.time),
        degraded=_plain(Degraded, message.degraded) if message.HasField("degraded") else None,
        stop_sequence=message.stop_sequence if stop == "stop_sequence" else None,
        stop_token_id=message.stop_token_id if stop == "stop_token_id" else None,
    )


def _plain(kind: type[V], message: Any, **decoded: Any) -> V:
    """The dataclass whose fields are named as the message's, but for those `decoded` already."""
    names = {item.name for item in fields(kind)} - decoded.keys()  # type: ignore[arg-type]
    repeated = {field.name for field in message.DESCRIPTOR.fields if field.is_repeated}
    values = {name: getattr(message, name) for name in names}
    lists = {name: tuple(values[name]) for name in names & repeated}
    return kind(**values | lists | decoded)
