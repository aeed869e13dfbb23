"""Between the messages of `uag.orchestrator.v1` and the plain values of requests and events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TypeVar

from orchestrator.events import (
    CommittedToken,
    Delta,
    Event,
    Finished,
    FinishReason,
    Started,
    TokenSource,
    TopToken,
)
from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import (
    AnswerRequest,
    ChatPrompt,
    DraftFailurePolicy,
    LogprobOptions,
    Prompt,
    SamplingOptions,
    SpeculationMode,
    SpeculationOptions,
    StoppingOptions,
    TextPrompt,
    TokenPrompt,
)
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.constraint.grammar import MAX_CHOICES
from uag_common.decoding_check import MAX_LOGIT_BIASES
from uag_common.errors import InvalidRequestError
from uag_common.limits import check_count
from uag_common.rpc.decoding_messages import decode_constraint, encode_constraint

V = TypeVar("V")

_SOURCES = {
    TokenSource.TARGET: pb.TOKEN_SOURCE_TARGET,
    TokenSource.DRAFT: pb.TOKEN_SOURCE_DRAFT,
    TokenSource.CORRECTION: pb.TOKEN_SOURCE_CORRECTION,
    TokenSource.BONUS: pb.TOKEN_SOURCE_BONUS,
    TokenSource.LOOKUP: pb.TOKEN_SOURCE_LOOKUP,
}
_REASONS = {
    FinishReason.EOS: pb.FINISH_REASON_EOS,
    FinishReason.MAX_TOKENS: pb.FINISH_REASON_MAX_TOKENS,
    FinishReason.CONTEXT_LIMIT: pb.FINISH_REASON_CONTEXT_LIMIT,
    FinishReason.STOP_SEQUENCE: pb.FINISH_REASON_STOP_SEQUENCE,
    FinishReason.STOP_TOKEN: pb.FINISH_REASON_STOP_TOKEN,
    FinishReason.TIME_LIMIT: pb.FINISH_REASON_TIME_LIMIT,
    FinishReason.CANCELLED: pb.FINISH_REASON_CANCELLED,
}
_MODES = {
    SpeculationMode.AUTO: pb.SPECULATION_MODE_AUTO,
    SpeculationMode.OFF: pb.SPECULATION_MODE_OFF,
    SpeculationMode.FORCE: pb.SPECULATION_MODE_FORCE,
}
_POLICIES = {
    DraftFailurePolicy.DEGRADE: pb.DRAFT_FAILURE_POLICY_DEGRADE,
    DraftFailurePolicy.FAIL: pb.DRAFT_FAILURE_POLICY_FAIL,
}

MAX_TOKEN_IDS = 1 << 20
MAX_CHAT_MESSAGES = 4096
MAX_STOP_SEQUENCES = 16
MAX_STOP_TOKEN_IDS = 64
MAX_METADATA = 16


def decode_request(message: pb.GenerateRequest) -> AnswerRequest:
    """Raises InvalidRequestError for what has no plain value, or too many of them."""
    given = message.HasField
    _check_counts(message)
    return AnswerRequest(
        prompt=decode_prompt(message),
        max_new_tokens=message.max_new_tokens if given("max_new_tokens") else None,
        truncate_prompt_tokens=(
            message.truncate_prompt_tokens if given("truncate_prompt_tokens") else None
        ),
        sampling=_decode_sampling(message.sampling),
        stopping=_decode_stopping(message.stopping),
        speculation=_decode_speculation(message.speculation),
        logprobs=LogprobOptions(
            top=message.logprobs.top if message.logprobs.HasField("top") else None,
            prompt_top=(
                message.logprobs.prompt_top if message.logprobs.HasField("prompt_top") else None
            ),
        ),
        constraint=decode_constraint(message.constraint, "constraint")
        if given("constraint")
        else None,
        n=message.n if given("n") else None,
        request_id=message.request_id,
        session_id=message.session_id,
        cache_salt=message.cache_salt,
        priority=message.priority,
        metadata=tuple(sorted(message.metadata.items())),
    )


def decode_prompt(message: pb.GenerateRequest | pb.TokenizeRequest) -> Prompt:
    """Raises InvalidRequestError if there is none."""
    match message.WhichOneof("prompt"):
        case "text":
            return TextPrompt(message.text)
        case "chat":
            check_count("chat.messages", len(message.chat.messages), MAX_CHAT_MESSAGES, "entries")
            turns = (ChatMessage(turn.role, turn.content) for turn in message.chat.messages)
            return ChatPrompt(tuple(turns))
        case "token_ids" if isinstance(message, pb.GenerateRequest):
            return TokenPrompt(tuple(message.token_ids.ids))
        case _:
            kinds = ", ".join(f"`{item.name}`" for item in message.DESCRIPTOR.oneofs[0].fields)
            raise InvalidRequestError("prompt", f"give one of {kinds}")


def _check_counts(message: pb.GenerateRequest) -> None:
    """Before anything is copied: a message has room for millions, and all wait meanwhile."""
    check_count("token_ids.ids", len(message.token_ids.ids), MAX_TOKEN_IDS, "entries")
    check_count(
        "sampling.logit_bias", len(message.sampling.logit_bias), MAX_LOGIT_BIASES, "entries"
    )
    check_count(
        "stopping.stop_sequences",
        len(message.stopping.stop_sequences),
        MAX_STOP_SEQUENCES,
        "entries",
    )
    check_count(
        "stopping.stop_token_ids",
        len(message.stopping.stop_token_ids),
        MAX_STOP_TOKEN_IDS,
        "entries",
    )
    check_count("constraint.choice", len(message.constraint.choice.texts), MAX_CHOICES, "entries")
    check_count("metadata", len(message.metadata), MAX_METADATA, "entries")


def _decode_sampling(message: pb.SamplingOptions) -> SamplingOptions:
    given = message.HasField
    return SamplingOptions(
        temperature=message.temperature if given("temperature") else None,
        top_k=message.top_k if given("top_k") else None,
        top_p=message.top_p if given("top_p") else None,
        min_p=message.min_p if given("min_p") else None,
        typical_p=message.typical_p if given("typical_p") else None,
        repetition_penalty=message.repetition_penalty if given("repetition_penalty") else None,
        frequency_penalty=message.frequency_penalty if given("frequency_penalty") else None,
        presence_penalty=message.presence_penalty if given("presence_penalty") else None,
        logit_bias=tuple(sorted(message.logit_bias.items())),
        seed=message.seed if given("seed") else None,
    )


def _decode_stopping(message: pb.StoppingOptions) -> StoppingOptions:
    limit = message.time_limit_seconds if message.HasField("time_limit_seconds") else None
    return StoppingOptions(
        min_new_tokens=message.min_new_tokens if message.HasField("min_new_tokens") else None,
        stop_sequences=tuple(message.stop_sequences),
        stop_token_ids=tuple(message.stop_token_ids),
        include_stop=message.include_stop,
        ignore_eos=message.ignore_eos,
        time_limit_seconds=limit,
    )


def _decode_speculation(message: pb.SpeculationOptions) -> SpeculationOptions:
    given = message.HasField
    return SpeculationOptions(
        draft_tokens=message.draft_tokens if given("draft_tokens") else None,
        lookup_tokens=message.lookup_tokens if given("lookup_tokens") else None,
        mode=_decode_enum("speculation.mode", message.mode, _MODES, SpeculationMode.AUTO),
        min_probability=message.min_probability if given("min_probability") else None,
        on_draft_failure=_decode_enum(
            "speculation.on_draft_failure",
            message.on_draft_failure,
            _POLICIES,
            DraftFailurePolicy.DEGRADE,
        ),
    )


def _decode_enum(field: str, number: int, numbers: Mapping[V, int], default: V) -> V:
    if not number:
        return default
    for value, known in numbers.items():
        if known == number:
            return value
    known_numbers = ", ".join(str(known) for known in numbers.values())
    raise InvalidRequestError(field, f"is {number}, must be one of {known_numbers}")


def encode_parameters(request: AnswerRequest) -> pb.GenerateRequest:
    """The request without its prompt."""
    sampling, stopping = request.sampling, request.stopping
    return pb.GenerateRequest(
        max_new_tokens=request.max_new_tokens,
        truncate_prompt_tokens=request.truncate_prompt_tokens,
        sampling=pb.SamplingOptions(**asdict(sampling) | {"logit_bias": dict(sampling.logit_bias)}),
        stopping=pb.StoppingOptions(**asdict(stopping)),
        speculation=_encode_speculation(request.speculation),
        logprobs=pb.LogprobOptions(**asdict(request.logprobs)),
        constraint=encode_constraint(request.constraint),
        n=request.n,
        request_id=request.request_id,
        session_id=request.session_id,
        cache_salt=request.cache_salt,
        priority=request.priority,
        metadata=dict(request.metadata),
    )


def _encode_speculation(speculation: SpeculationOptions) -> pb.SpeculationOptions:
    return pb.SpeculationOptions(
        draft_tokens=speculation.draft_tokens,
        lookup_tokens=speculation.lookup_tokens,
        mode=_MODES[speculation.mode],
        min_probability=speculation.min_probability,
        on_draft_failure=_POLICIES[speculation.on_draft_failure],
    )


def encode_event(event: Event) -> pb.GenerateResponse:
    match event:
        case Started():
            return pb.GenerateResponse(started=encode_started(event))
        case Delta():
            tokens = (encode_token(token) for token in event.tokens)
            delta = pb.Delta(text=event.text, tokens=tokens, choice=event.choice)
            return pb.GenerateResponse(delta=delta)
        case Finished():
            return pb.GenerateResponse(finished=encode_finished(event))


def encode_started(started: Started) -> pb.Started:
    prompt = (
        pb.PromptToken(id=item.id, logprob=item.logprob, top=_encode_top(item.top))
        for item in started.prefilled.prompt
    )
    return pb.Started(
        prompt_tokens=started.prompt_tokens,
        max_new_tokens=started.request.max_new_tokens,
        draft_tokens=started.draft_tokens,
        lookup_tokens=started.lookup_tokens,
        target_model_id=started.target_model_id,
        draft_model_id=started.draft_model_id,
        cached_tokens=started.prefilled.cached_tokens,
        parameters=encode_parameters(started.request),
        trace_id=started.trace_id,
        prompt=prompt,
    )


def encode_token(token: CommittedToken) -> pb.Token:
    return pb.Token(
        id=token.id,
        source=_SOURCES[token.source],
        round=token.round,
        text=token.text,
        position=token.position,
        logprob=token.logprob,
        top=_encode_top(token.top),
    )


def _encode_top(top: tuple[TopToken, ...]) -> list[pb.TopToken]:
    return [pb.TopToken(id=item.id, logprob=item.logprob, text=item.text) for item in top]


def encode_finished(event: Finished) -> pb.Finished:
    return pb.Finished(
        finish_reason=_REASONS[event.reason],
        usage=pb.Usage(**asdict(event.usage)),
        speculation=pb.SpeculationFigures(**asdict(event.speculation)),
        time=pb.TimeFigures(**asdict(event.time)),
        degraded=None if event.degraded is None else pb.Degraded(**asdict(event.degraded)),
        choice=event.choice,
        stop_sequence=event.stop if isinstance(event.stop, str) else None,
        stop_token_id=event.stop if isinstance(event.stop, int) else None,
    )
