"""Where a prompt comes from: an argument, a file, standard input. Knows no model.

Text is taken as it stands, its last line break included.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from orchestrator.client import Prompt, TokenIds, chat
from uag_common.errors import InvalidRequestError

STDIN = "-"


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
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            name, f"byte {error.start + 1} is no valid UTF-8: convert the text to UTF-8 first"
        ) from error
    if not text:
        raise InvalidRequestError(name, "is empty")
    return text


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequestError(path, f"cannot be read: {error.strerror}") from error


def as_prompt(text: str, *, question: bool, system: str | None, token_ids: bool) -> Prompt:
    """A raw prompt unless a conversation is asked for, and a system message asks for one, or the
    text is a list of ids. Raises InvalidRequestError for what is no id."""
    if token_ids:
        return TokenIds(tuple(_token_id(word) for word in text.replace(",", " ").split()))
    return chat(text, system) if question or system is not None else text


def _token_id(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise InvalidRequestError("the prompt", f"{word!r} is no token id")
    return int(word)
