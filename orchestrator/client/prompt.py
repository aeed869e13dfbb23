"""What is to be answered or continued: a text, a conversation, token ids. Plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Ids of the target to continue as they stand; control tokens among them are control tokens."""

    ids: Sequence[int]


Prompt: TypeAlias = str | Sequence[Message | Mapping[str, str]] | TokenIds
"""A text to continue as it stands, a conversation to answer (a message may be a mapping of "role"
and "content"), or ids to continue."""


def chat(question: str, system: str | None = None) -> tuple[Message, ...]:
    """A conversation of one question, after a system message if one is given."""
    before = () if system is None else (Message("system", system),)
    return (*before, Message("user", question))
