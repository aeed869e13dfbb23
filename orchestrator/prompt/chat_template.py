"""A conversation as a model's own chat template writes it. Knows what a template is given and what
is told when it fails; it runs elsewhere (see `renderer`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.prompt.renderer import Renderer, TemplateFailedError, TemplateSource
from uag_common.errors import InvalidRequestError
from uag_common.tokenizer.errors import TokenizerError

ROLES = ("system", "user", "assistant")

SPECIAL_TOKENS = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""Whose texts a template may name, as `bos_token` and so on."""

MOST_CHARACTERS = 1 << 20
MOST_REPEATS = 4
"""A template may write so many characters of its own, and a conversation so many times."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation; `role` is one of ROLES."""

    role: str
    content: str


class ChatTemplate:
    """May be called from several threads."""

    def __init__(self, source: TemplateSource) -> None:
        """Raises TokenizerError for a template that cannot be compiled."""
        self._renderer = Renderer(source)
        try:
            # To compile a template already computes what is constant in it.
            self._renderer.render([], 0)
        except TemplateFailedError as error:
            raise TokenizerError(f"the model's chat template {error}") from error

    def render(self, *chats: Sequence[ChatMessage]) -> list[str]:
        """Each of the conversations, up to where the answer starts. Raises InvalidRequestError with
        the reason for which the template refuses one of them, or is stopped; OverloadedError if
        there is no time for it now."""
        size = max(sum(len(message.content) for message in chat) for chat in chats)
        turns = [[{"role": m.role, "content": m.content} for m in chat] for chat in chats]
        try:
            return self._renderer.render(turns, MOST_CHARACTERS + MOST_REPEATS * size)
        except TemplateFailedError as error:
            raise InvalidRequestError("chat", f"the model's chat template {error}") from error


class PlainChat:
    """Stands in where a model has no template: a base model reads a conversation as a text."""

    def render(self, messages: Sequence[ChatMessage]) -> str:
        turns = (f"{message.role.capitalize()}:\n{message.content}\n\n" for message in messages)
        return "".join(turns) + "Assistant:\n"


def read_chat_template(
    tokenizer_config: Any, template_file: str | None
) -> ChatTemplate | PlainChat:
    """The template of a tokenizer_config.json (decoded) or of a chat_template.jinja."""
    source = template_file or _default_template(tokenizer_config.get("chat_template"))
    if source is None:
        return PlainChat()
    names = [f"{role}_token" for role in SPECIAL_TOKENS]
    texts = {name: _token_text(tokenizer_config.get(name)) for name in names}
    known = {name: text for name, text in texts.items() if text is not None}
    return ChatTemplate(TemplateSource(source, known))


def _default_template(value: Any) -> str | None:
    if isinstance(value, list):
        named = {item["name"]: item["template"] for item in value}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _token_text(value: Any) -> str | None:
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None
