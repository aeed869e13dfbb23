"""The processes in which a chat template runs, from outside: starts, asks, sees their end.

Knows its limits. It must not know jinja2, nor what a conversation says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uag_common.line_process import (
    TOOK_TOO_LONG,
    LineProcess,
    LineProcesses,
    ProcessEndedError,
)

CPU_SECONDS = 1.0
"""What a template may compute for one request."""

MEMORY_BYTES = 1024 * 1024 * 1024
"""What its process may map: the largest conversation that fits into a message takes 400 MB."""

PATIENCE_SECONDS = 30.0
"""For a process that gets no time to compute in."""

_PROGRAM = Path(__file__).with_name("renderer_process.py")


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A chat template and the texts of the special tokens that it may name."""

    text: str
    special_tokens: Mapping[str, str]


class TemplateFailedError(Exception):
    """The template gives no text. What it says goes on from "the model's chat template ..."."""


class Renderer:
    """Renders one template; may be used by several threads. Its processes end with it, or when the
    template runs away."""

    def __init__(self, source: TemplateSource) -> None:
        opening = {
            "source": source.text,
            "special_tokens": source.special_tokens,
            "cpu_seconds": CPU_SECONDS,
            "memory_bytes": MEMORY_BYTES,
        }
        self._processes = LineProcesses(lambda: LineProcess(_PROGRAM, opening, PATIENCE_SECONDS))

    def render(self, chats: Sequence[Sequence[Mapping[str, str]]], most: int) -> list[str]:
        """Each of the conversations as the template writes it, in `most` characters at most.
        Raises TemplateFailedError, OverloadedError if there is no time for it now, InternalError if
        there can be no process."""
        try:
            reply = self._processes.ask({"chats": chats, "most_characters": most})
        except ProcessEndedError as error:
            raise TemplateFailedError(_why(error)) from error
        if "problem" in reply:
            raise TemplateFailedError(reply["problem"])
        texts: list[str] = reply["texts"]
        return texts


def _why(error: ProcessEndedError) -> str:
    if error.status == TOOK_TOO_LONG:
        return f"computes for more than {CPU_SECONDS:g} s"
    return f"{error} of its process"
