"""Where a prompt comes from: an argument, a file, standard input. Knows no model.

Text is taken as it stands, its last line break included.
"""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import BinaryIO

from orchestrator.client import Message, Prompt, TokenIds, chat
from uag_common.errors import InvalidRequestError

STDIN = "-"


class PromptForm(Enum):
    """What the text of a prompt is."""

    TEXT = "text"
    QUESTION = "question"
    MESSAGES = "messages"
    TOKEN_IDS = "token ids"  # noqa: S105 - a form


def read_prompt(argument: str | None, file: str | None, stdin: BinaryIO) -> str:
    """The argument, or what the file holds; either is standard input if it is "-".

    Raises InvalidRequestError if there is no text, or if it is not UTF-8.
    """
    if argument is not None and argument != STDIN:
        name, data = "the prompt", argument.encode("utf-8", "surrogateescape")
    elif file in (None, STDIN):
        name, data = "standard input", stdin.read()
    else:
        name, data = str(file), _read(str(file))
    text = _text(name, data)
    if not text:
        raise InvalidRequestError(name, "is empty")
    return text


def read_text(path: str) -> str:
    """What a file holds. Raises InvalidRequestError if it cannot be read or is not UTF-8."""
    return _text(path, _read(path))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequestError(path, f"cannot be read: {error.strerror}") from error


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            name, f"byte {error.start + 1} is no valid UTF-8: convert the text to UTF-8 first"
        ) from error


def as_prompt(text: str, form: PromptForm, system: str | None = None) -> Prompt:
    """What a text of that form says; `system` goes before a question. Raises InvalidRequestError
    for what does not have the form."""
    match form:
        case PromptForm.TEXT:
            return text
        case PromptForm.QUESTION:
            return chat(text, system)
        case PromptForm.MESSAGES:
            return _messages(text)
        case PromptForm.TOKEN_IDS:
            return TokenIds(tuple(map(_token_id, text.replace(",", " ").split())))


def _messages(text: str) -> Prompt:
    try:
        turns = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("the prompt", f"is no JSON: {error}") from error
    if not isinstance(turns, list) or not all(map(_is_message, turns)):
        raise InvalidRequestError(
            "the prompt", 'is no conversation: [{"role": "user", "content": "..."}, ...]'
        )
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)


def _is_message(turn: object) -> bool:
    match turn:
        case {"role": str(), "content": str(), **others}:
            return not others
    return False


def _token_id(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise InvalidRequestError("the prompt", f"{word[:40]!r} is no token id")
    return int(word)
