"""A request for an answer, checked as far as it can be without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.prompt.chat_template import ROLES, ChatMessage
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_DRAFT_TOKENS


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """A text to continue as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation to be answered."""

    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What a client asks for; None where it leaves the choice to the server."""

    prompt: TextPrompt | ChatPrompt
    max_new_tokens: int | None
    draft_tokens: int | None

    def check(self) -> None:
        """Raises InvalidRequestError for the first field that is wrong."""
        match self.prompt:
            case TextPrompt(text):
                if not text:
                    raise InvalidRequestError("text", "must not be empty")
            case ChatPrompt(messages):
                _check_messages(messages)
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise InvalidRequestError(
                "max_new_tokens", f"is {self.max_new_tokens}, must be at least 1"
            )
        if self.draft_tokens is not None and not 0 <= self.draft_tokens <= MAX_DRAFT_TOKENS:
            raise InvalidRequestError(
                "speculation.draft_tokens",
                f"is {self.draft_tokens}, must be from 0 (never draft) to {MAX_DRAFT_TOKENS}",
            )


def _check_messages(messages: Sequence[ChatMessage]) -> None:
    if not messages:
        raise InvalidRequestError("chat.messages", "must not be empty")
    for index, message in enumerate(messages):
        if message.role not in ROLES:
            raise InvalidRequestError(
                f"chat.messages[{index}].role",
                f"is {message.role!r}, must be one of {', '.join(ROLES)}",
            )
