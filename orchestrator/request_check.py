"""Whether a request is right, as far as it can be told without a model: one clear error for the
first field that is wrong. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.prompt.chat_template import ROLES, ChatMessage
from orchestrator.request import (
    AnswerRequest,
    ChatPrompt,
    DraftFailurePolicy,
    Prompt,
    SpeculationMode,
    SpeculationOptions,
    StoppingOptions,
    TextPrompt,
    TokenPrompt,
)
from uag_common.decoding_check import MAX_PRIORITY, check_sampling
from uag_common.errors import InvalidRequestError
from uag_common.limits import (
    MAX_CANDIDATES,
    MAX_DRAFT_TOKENS,
    MAX_TOP_LOGPROBS,
    check_above_zero,
    check_count,
    check_range,
)

MAX_ANSWERS = 16
MAX_STOP_SEQUENCE_BYTES = 256
MAX_ID_BYTES = 128
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 256


def check_request(request: AnswerRequest) -> None:
    """Raises InvalidRequestError. Checks neither ids, for which the vocabulary must be known, nor
    whether a constraint compiles, nor the lengths of lists: those were checked before they were
    made (see `messages`)."""
    check_prompt(request.prompt)
    check_range("max_new_tokens", request.max_new_tokens, 1)
    check_range("truncate_prompt_tokens", request.truncate_prompt_tokens, 1)
    check_sampling("sampling", request.sampling.sampling())
    _check_stopping(request.stopping)
    _check_speculation(request.speculation)
    check_range("logprobs.top", request.logprobs.top, 0, MAX_TOP_LOGPROBS)
    check_range("logprobs.prompt_top", request.logprobs.prompt_top, 0, MAX_TOP_LOGPROBS)
    check_range("n", request.n, 1, MAX_ANSWERS)
    check_range("priority", request.priority, -MAX_PRIORITY, MAX_PRIORITY)
    _check_names(request)
    _check_contradictions(request)


def check_prompt(prompt: Prompt) -> None:
    """Raises InvalidRequestError."""
    match prompt:
        case TextPrompt(text):
            if not text:
                raise InvalidRequestError("text", "must not be empty")
        case ChatPrompt(messages):
            _check_messages(messages)
        case TokenPrompt(ids):
            if not ids:
                raise InvalidRequestError("token_ids.ids", "must not be empty")


def _check_messages(messages: Sequence[ChatMessage]) -> None:
    if not messages:
        raise InvalidRequestError("chat.messages", "must not be empty")
    for index, message in enumerate(messages):
        if message.role not in ROLES:
            raise InvalidRequestError(
                f"chat.messages[{index}].role",
                f"is {message.role[:40]!r}, must be one of {', '.join(ROLES)}",
            )


def _check_stopping(stopping: StoppingOptions) -> None:
    check_range("stopping.min_new_tokens", stopping.min_new_tokens, 0)
    check_above_zero("stopping.time_limit_seconds", stopping.time_limit_seconds)
    for index, text in enumerate(stopping.stop_sequences):
        field = f"stopping.stop_sequences[{index}]"
        if not text:
            raise InvalidRequestError(field, "must not be empty")
        check_count(field, len(text.encode()), MAX_STOP_SEQUENCE_BYTES, "bytes")


def _check_speculation(speculation: SpeculationOptions) -> None:
    tokens, mode = speculation.draft_tokens, speculation.mode
    if tokens is not None and not 0 <= tokens <= MAX_DRAFT_TOKENS:
        raise InvalidRequestError(
            "speculation.draft_tokens",
            f"is {tokens}, must be from 0 (never draft) to {MAX_DRAFT_TOKENS}",
        )
    lookup = speculation.lookup_tokens
    if lookup is not None and not 0 <= lookup <= MAX_CANDIDATES:
        raise InvalidRequestError(
            "speculation.lookup_tokens",
            f"is {lookup}, must be from 0 (never look up) to {MAX_CANDIDATES}",
        )
    check_range("speculation.min_probability", speculation.min_probability, 0, 1)
    if mode is SpeculationMode.FORCE and tokens == 0:
        raise InvalidRequestError("speculation.draft_tokens", "is 0, but the mode is FORCE")
    if mode is SpeculationMode.FORCE and lookup:
        raise InvalidRequestError(
            "speculation.lookup_tokens",
            f"is {lookup}, but the mode is FORCE, which asks the draft model in every round",
        )
    if mode is SpeculationMode.OFF:
        least = speculation.min_probability
        given = (("draft_tokens", tokens), ("lookup_tokens", lookup), ("min_probability", least))
        for name, value in given:
            if value:
                raise InvalidRequestError(f"speculation.{name}", f"is {value}, but the mode is OFF")
        if speculation.on_draft_failure is DraftFailurePolicy.FAIL:
            raise InvalidRequestError(
                "speculation.on_draft_failure", "is FAIL, but the mode is OFF"
            )


def _check_names(request: AnswerRequest) -> None:
    check_count("request_id", len(request.request_id), MAX_ID_BYTES, "characters")
    if not (request.request_id.isascii() and (request.request_id or "x").isprintable()):
        raise InvalidRequestError("request_id", "must be printable ASCII")
    check_count("session_id", len(request.session_id.encode()), MAX_ID_BYTES, "bytes")
    check_count("cache_salt", len(request.cache_salt.encode()), MAX_ID_BYTES, "bytes")
    for key, value in request.metadata:
        if not key or len(key) > MAX_METADATA_KEY:
            raise InvalidRequestError(
                "metadata", f"a key has {len(key)} characters, 1 to {MAX_METADATA_KEY} are allowed"
            )
        check_count(f"metadata[{key!r}]", len(value), MAX_METADATA_VALUE, "characters")


def _check_contradictions(request: AnswerRequest) -> None:
    """What is right by itself, but not together."""
    if request.greedy:
        for name in ("top_k", "top_p", "min_p", "typical_p"):
            if getattr(request.sampling, name) is not None:
                raise InvalidRequestError(
                    f"sampling.{name}", "needs a temperature: greedy decoding takes the best token"
                )
        if request.n is not None and request.n > 1:
            raise InvalidRequestError("n", f"is {request.n}, but greedy answers are all the same")
    if request.constraint is not None and request.stopping.ignore_eos:
        raise InvalidRequestError(
            "stopping.ignore_eos", "cannot be together with a constraint, which ends the answer"
        )
    if request.constraint is not None and request.stopping.min_new_tokens:
        raise InvalidRequestError(
            "stopping.min_new_tokens", "cannot be together with a constraint, which ends the answer"
        )
