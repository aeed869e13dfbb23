"""Renders a conversation as a model's own chat template wants it.

The template comes from a model's folder, so it runs in jinja2's sandbox. The names that a template
may use are those of transformers' `apply_chat_template`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from uag_common.errors import InvalidRequestError

ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation; `role` is one of ROLES."""

    role: str
    content: str


class _GenerationTag(Extension):
    """`{% generation %}` marks what an assistant said; for a prompt it means nothing."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


class ChatTemplate:
    """A template and the special tokens' texts that it may name."""

    def __init__(self, source: str, special_tokens: Sequence[tuple[str, str]]) -> None:
        self._template = _compile(source)
        self._special_tokens = tuple(special_tokens)

    def render(self, messages: Sequence[ChatMessage]) -> str:
        """The prompt, up to where the answer starts. Raises InvalidRequestError with the reason
        that the template gives."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            return self._template.render(
                messages=turns,
                add_generation_prompt=True,
                tools=None,
                documents=None,
                **dict(self._special_tokens),
            )
        except Exception as error:
            # The template is code from a model's folder: it may fail in any way.
            raise InvalidRequestError(
                "chat", f"the model's chat template refuses it: {error}"
            ) from error


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
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    texts = ((name, _token_text(tokenizer_config.get(name))) for name in names)
    return ChatTemplate(source, [(name, text) for name, text in texts if text is not None])


def _default_template(value: Any) -> str | None:
    if isinstance(value, list):
        named = {item["name"]: item["template"] for item in value}
        value = named.get("default")
    return value if isinstance(value, str) else None


def _token_text(value: Any) -> str | None:
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def _compile(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationTag]
    )
    environment.filters["tojson"] = _to_json
    # Writes as much text as it is asked for.
    del environment.globals["lipsum"]
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def _to_json(value: Any, indent: int | None = None) -> str:
    # jinja2's own filter escapes for HTML, which a prompt is not.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)
