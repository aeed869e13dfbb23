"""The process in which a chat template runs, bounded in time and memory.

A template is code from a model's folder: it may loop, or make hours of work or gigabytes of text in
one operation. Only a process of its own can be stopped in the middle of that. `renderer` starts it
and talks to it in lines of JSON: one that opens it, then one for each request, each with a reply.
Knows jinja2, and the names that a template may use: those of transformers' `apply_chat_template`.
Imports nothing of the project, so that it starts quickly.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, BinaryIO, NoReturn

from jinja2 import Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST_REASON = 500
"""Characters that are told of why a template refuses: it may raise any text."""

Chat = Sequence[Mapping[str, str]]


class TooLongError(Exception):
    """The template writes more than it may."""


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answers requests until there are no more of them; SIGPROF ends the process in the middle of
    one that takes too long."""
    opening = json.loads(requests.readline())
    _limit_memory(opening["memory_bytes"])
    chats = _ChatRenderer(opening["source"], opening["special_tokens"])
    for line in requests:
        replies.write(_reply(chats, json.loads(line), opening["cpu_seconds"]))
        replies.flush()


class _ChatRenderer:
    """A template and the texts of the special tokens that it may name."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        self._source = source
        self._special_tokens = special_tokens

    def render(self, chats: Sequence[Chat], most_characters: int) -> Sequence[str]:
        """Each conversation up to where the answer starts."""
        render = self._template.render
        texts = [
            render(
                messages=chat,
                add_generation_prompt=True,
                tools=None,
                documents=None,
                **self._special_tokens,
            )
            for chat in chats
        ]
        if any(len(text) > most_characters for text in texts):
            raise TooLongError(f"more than {most_characters} characters")
        return texts

    @cached_property
    def _template(self) -> Template:
        # At the first request, since to compile a template already computes what is constant in it.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationTag]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        return environment.from_string(self._source)


class _GenerationTag(Extension):
    """`{% generation %}` marks what an assistant said; for a prompt it means nothing."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own filter escapes for HTML, which a prompt is not.
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _reply(chats: _ChatRenderer, request: Any, cpu_seconds: float) -> bytes:
    try:
        with _limited_cpu(cpu_seconds):
            texts = chats.render(request["chats"], request["most_characters"])
        return _line({"texts": texts})
    except MemoryError:
        problem = "needs too much memory"
    except TooLongError as error:
        problem = f"writes {error}"
    except TemplateSyntaxError as error:
        problem = f"cannot be read: {_reason(error)}"
    except Exception as error:
        # A template may fail in any way.
        problem = f"refuses it: {_reason(error)}"
    return _line({"problem": problem})


def _line(reply: Any) -> bytes:
    return json.dumps(reply, ensure_ascii=False).encode() + b"\n"


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    # A surrogate by itself cannot be sent.
    return text[:LONGEST_REASON].encode("utf-8", "replace").decode()


@contextmanager
def _limited_cpu(seconds: float) -> Iterator[None]:
    """Time in which the process computes: on a busy machine a good template takes no longer."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory(size: int) -> None:
    if sys.platform == "linux":
        # Elsewhere the system does not keep to it, or knows no such limit.
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
