"""From a prompt and keywords to the messages of the contract, and back to keywords."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from google.protobuf.message import Message

from orchestrator.client.errors import InvalidRequestError
from orchestrator.client.options import Options
from orchestrator.client.prompt import Prompt, TokenIds
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.rpc.channel import MAX_MESSAGE_BYTES

_PATHS: Mapping[str, str] = {
    "max_new_tokens": "max_new_tokens",
    "truncate_prompt_tokens": "truncate_prompt_tokens",
    "n": "n",
    "temperature": "sampling.temperature",
    "top_k": "sampling.top_k",
    "top_p": "sampling.top_p",
    "min_p": "sampling.min_p",
    "typical_p": "sampling.typical_p",
    "repetition_penalty": "sampling.repetition_penalty",
    "frequency_penalty": "sampling.frequency_penalty",
    "presence_penalty": "sampling.presence_penalty",
    "logit_bias": "sampling.logit_bias",
    "seed": "sampling.seed",
    "json_schema": "constraint.json_schema",
    "regex": "constraint.regex",
    "choice": "constraint.choice.texts",
    "grammar": "constraint.grammar",
    "stop": "stopping.stop_sequences",
    "stop_token_ids": "stopping.stop_token_ids",
    "include_stop": "stopping.include_stop",
    "ignore_eos": "stopping.ignore_eos",
    "min_new_tokens": "stopping.min_new_tokens",
    "time_limit": "stopping.time_limit_seconds",
    "logprobs": "logprobs.top",
    "prompt_logprobs": "logprobs.prompt_top",
    "speculation": "speculation.mode",
    "draft_tokens": "speculation.draft_tokens",
    "draft_min_probability": "speculation.min_probability",
    "on_draft_failure": "speculation.on_draft_failure",
    "request_id": "request_id",
    "session_id": "session_id",
    "cache_salt": "cache_salt",
    "priority": "priority",
    "metadata": "metadata",
}
_CONSTRAINTS = ("json_schema", "regex", "choice", "grammar")
_ENUMS: Mapping[str, Mapping[str, int]] = {
    "speculation": {
        "auto": pb.SPECULATION_MODE_AUTO,
        "off": pb.SPECULATION_MODE_OFF,
        "force": pb.SPECULATION_MODE_FORCE,
    },
    "on_draft_failure": {
        "degrade": pb.DRAFT_FAILURE_POLICY_DEGRADE,
        "fail": pb.DRAFT_FAILURE_POLICY_FAIL,
    },
}


def encode_request(prompt: Prompt, options: Options) -> pb.GenerateRequest:
    """Raises InvalidRequestError for what the contract has no room for, and TypeError for an
    unknown keyword or a value of another type."""
    message = pb.GenerateRequest()
    _put_prompt(message, prompt)
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := sorted(given.keys() - _PATHS.keys()):
        raise TypeError(f"unexpected keyword {unknown[0]!r}; known: {', '.join(_PATHS)}")
    _check_constraint(given)
    for name, value in given.items():
        _put(message, _PATHS[name], _wire_form(name, value))
    if message.ByteSize() > MAX_MESSAGE_BYTES:
        raise _refused("prompt", f"makes a request of more than {MAX_MESSAGE_BYTES} bytes")
    return message


def encode_tokenize(prompt: Prompt) -> pb.TokenizeRequest:
    """Raises InvalidRequestError and TypeError as `encode_request` does."""
    message = pb.TokenizeRequest()
    _put_prompt(message, prompt)
    return message


def encode_detokenize(ids: Iterable[int]) -> pb.DetokenizeRequest:
    """Raises InvalidRequestError and TypeError as `encode_request` does."""
    message = pb.DetokenizeRequest()
    _put(message, "ids", tuple(ids))
    return message


def decode_options(message: pb.GenerateRequest) -> Options:
    """The keywords that make this message, its prompt left out; a value that only a newer server
    knows is left out too."""
    options: dict[str, Any] = {}
    for name, path in _PATHS.items():
        value = _get(message, path)
        if name in _ENUMS:
            by_number = {number: word for word, number in _ENUMS[name].items()}
            value = by_number.get(value)
        if value is not None:
            options[name] = value
    return cast(Options, options)


def _put_prompt(message: pb.GenerateRequest | pb.TokenizeRequest, prompt: Prompt) -> None:
    if isinstance(prompt, str):
        _put(message, "text", prompt)
    elif not isinstance(prompt, TokenIds):
        message.chat.SetInParent()
        for turn in prompt:
            added = message.chat.messages.add()
            _put(added, "role", turn.role)
            _put(added, "content", turn.content)
    elif isinstance(message, pb.GenerateRequest):
        message.token_ids.SetInParent()
        _put(message, "token_ids.ids", tuple(prompt.ids))
    else:
        raise TypeError("token ids need no tokenizing: give a text or a conversation")


def _check_constraint(given: Mapping[str, Any]) -> None:
    """The contract has room for one; a choice of nothing would look like no constraint at all."""
    constraints = [name for name in _CONSTRAINTS if name in given]
    if len(constraints) > 1:
        raise _refused("constraint", f"{' and '.join(constraints)} are given, only one can be met")
    if "choice" in given and not given["choice"]:
        raise _refused("constraint.choice", "must have at least one text")


def _wire_form(name: str, value: Any) -> Any:
    """A value as its field has it."""
    if name in _ENUMS:
        if value not in _ENUMS[name]:
            words = ", ".join(_ENUMS[name])
            raise _refused(_PATHS[name], f"is {value!r}, must be one of {words}")
        return _ENUMS[name][value]
    if name == "json_schema" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    # A text is a sequence of texts too, and nobody means that one.
    return (value,) if name in ("stop", "choice") and isinstance(value, str) else value


def _put(message: Message, path: str, value: Any) -> None:
    *parents, name = path.split(".")
    holder: Any = message
    for parent in parents:
        holder = getattr(holder, parent)
    try:
        if isinstance(value, Mapping):
            getattr(holder, name).update(value)
        elif isinstance(value, str) or not isinstance(value, Iterable):
            setattr(holder, name, value)
        else:
            getattr(holder, name).extend(value)
    except UnicodeEncodeError as error:
        raise _refused(path, f"is no valid Unicode at character {error.start + 1}") from error
    except ValueError as error:
        raise _refused(path, f"is {_short(value)}, which the contract has no room for") from error
    except TypeError as error:
        raise TypeError(f"{path}: {_short(value)} is of the wrong type ({error})") from error


def _get(message: Message, path: str) -> Any:
    """None where nothing was given."""
    *parents, name = path.split(".")
    holder: Any = message
    for parent in parents:
        if not holder.HasField(parent):
            return None
        holder = getattr(holder, parent)
    field = holder.DESCRIPTOR.fields_by_name[name]
    value = getattr(holder, name)
    if field.has_presence:
        return value if holder.HasField(name) else None
    if isinstance(value, Mapping):
        return dict(value) or None
    if field.is_repeated:
        return tuple(value) or None
    return value or None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _refused(field: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"INVALID_ARGUMENT: {field}: {problem}", field, problem)
