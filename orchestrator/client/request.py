"""From a prompt and keywords to the messages of the contract, and back to keywords."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as ProtoMessage

from orchestrator.client.errors import InvalidRequestError
from orchestrator.client.fields import PATHS, argument_of
from orchestrator.client.options import Options
from orchestrator.client.prompt import Message, Prompt, TokenIds
from orchestrator.client.values import wanted
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.rpc.channel import MAX_MESSAGE_BYTES

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
    if unknown := sorted(given.keys() - PATHS.keys()):
        raise TypeError(f"unexpected keyword {unknown[0]!r}; known: {', '.join(PATHS)}")
    _check_constraint(given)
    for name, value in given.items():
        _put(message, PATHS[name], _wire_form(name, value))
    _check_size(message, "prompt")
    return message


def encode_tokenize(prompt: Prompt) -> pb.TokenizeRequest:
    """Raises InvalidRequestError and TypeError as `encode_request` does."""
    message = pb.TokenizeRequest()
    _put_prompt(message, prompt)
    _check_size(message, "prompt")
    return message


def encode_detokenize(ids: Iterable[int]) -> pb.DetokenizeRequest:
    """Raises InvalidRequestError and TypeError as `encode_request` does."""
    message = pb.DetokenizeRequest()
    _put(message, "ids", ids)
    _check_size(message, "ids")
    return message


def decode_options(message: pb.GenerateRequest) -> Options:
    """The keywords that make this message, its prompt left out; a value that only a newer server
    knows is left out too."""
    options: dict[str, Any] = {}
    for name, path in PATHS.items():
        value = _get(message, path)
        if name in _ENUMS:
            by_number = {number: word for word, number in _ENUMS[name].items()}
            value = by_number.get(value)
        if value is not None:
            options[name] = value
    return cast(Options, options)


def _check_size(message: ProtoMessage, argument: str) -> None:
    if message.ByteSize() > MAX_MESSAGE_BYTES:
        problem = f"makes a request of more than {MAX_MESSAGE_BYTES} bytes"
        raise _refused(argument, argument, problem)


def _put_prompt(message: pb.GenerateRequest | pb.TokenizeRequest, prompt: object) -> None:
    match prompt:
        case str():
            _put(message, "text", prompt)
        case TokenIds(ids):
            if not isinstance(message, pb.GenerateRequest):
                raise TypeError("token ids need no tokenizing: give a text or a conversation")
            message.token_ids.SetInParent()
            _put(message, "token_ids.ids", ids)
        case Sequence() if not isinstance(prompt, bytes | bytearray):
            message.chat.SetInParent()
            for index, turn in enumerate(prompt):
                _put_turn(message.chat.messages.add(), f"prompt[{index}]", turn)
        case _:
            raise TypeError(
                f"prompt: {_short(prompt)} is no prompt, it must be a text, a sequence of messages "
                "or TokenIds"
            )


def _put_turn(message: pb.ChatMessage, argument: str, turn: object) -> None:
    match turn:
        case Message(role, content):
            pass
        case {"role": role, "content": content, **others} if not others:
            pass
        case _:
            raise TypeError(
                f"{argument}: {_short(turn)} is no message, it must be Message(role, content) or a "
                'mapping of "role" and "content"; token ids go into TokenIds'
            )
    _put(message, "role", role, f"{argument}.role")
    _put(message, "content", content, f"{argument}.content")


def _check_constraint(given: Mapping[str, Any]) -> None:
    """The contract has room for one; a choice of nothing would look like no constraint at all."""
    constraints = [name for name in _CONSTRAINTS if name in given]
    if len(constraints) > 1:
        problem = f"{constraints[0]} is given too, only one can be met"
        raise _refused(constraints[1], "constraint", problem)
    if "choice" in given and not given["choice"]:
        raise _refused("choice", "constraint.choice", "must have at least one text")


def _wire_form(name: str, value: Any) -> Any:
    """A value as its field has it."""
    if name in _ENUMS:
        if value not in _ENUMS[name]:
            words = ", ".join(_ENUMS[name])
            raise _refused(name, PATHS[name], f"is {value!r}, must be one of {words}")
        return _ENUMS[name][value]
    if name == "json_schema" and not isinstance(value, str):
        return _schema_text(value)
    # A text is a sequence of texts too, and nobody means that one.
    return (value,) if name in ("stop", "choice") and isinstance(value, str) else value


def _schema_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        problem = f"cannot be written as JSON: {error}"
        raise _refused("json_schema", PATHS["json_schema"], problem) from error


def _put(message: ProtoMessage, path: str, value: Any, argument: str | None = None) -> None:
    """Raises InvalidRequestError and TypeError, which name the argument that the value came as."""
    *parents, name = path.split(".")
    holder: Any = message
    for parent in parents:
        holder = getattr(holder, parent)
    field = holder.DESCRIPTOR.fields_by_name[name]
    argument = argument or argument_of(path)
    try:
        _assign(holder, field, value)
    except UnicodeEncodeError as error:
        problem = f"is no valid Unicode at character {error.start + 1}"
        raise _refused(argument, path, problem) from error
    except (ValueError, OverflowError) as error:
        problem = f"is {_short(value)}, must be {wanted(field)}"
        raise _refused(argument, path, problem) from error
    except TypeError as error:
        raise TypeError(f"{argument}: is {_short(value)}, must be {wanted(field)}") from error


def _assign(holder: Any, field: FieldDescriptor, value: Any) -> None:
    """Raises TypeError, and ValueError for a number out of the field's range."""
    present = getattr(holder, field.name)
    if isinstance(present, MutableMapping):
        present.update(dict(value))
    elif not field.is_repeated:
        setattr(holder, field.name, value)
    elif isinstance(value, str | bytes | bytearray | Mapping):
        # Each can be gone through, and nobody means what comes out.
        raise TypeError
    else:
        present.extend(value)


def _get(message: ProtoMessage, path: str) -> Any:
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
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} too deep to be shown"
    return text if len(text) <= 100 else f"{text[:97]}..."


def _refused(argument: str, field: str, problem: str) -> InvalidRequestError:
    told = f"INVALID_ARGUMENT: {argument}: {problem}"
    return InvalidRequestError(told, argument, field, problem)
