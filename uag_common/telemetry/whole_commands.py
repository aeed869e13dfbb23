"""Spans that reach a collector together or not at all. Knows OpenTelemetry's SDK alone."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor


class _Command:
    """The parts of a command that have ended before it."""

    def __init__(self) -> None:
        self.ended = False
        self.parts: list[ReadableSpan] = []


class WholeCommands(SpanProcessor):
    """Passes the parts of a command on when it has ended, after the command's own span. What is
    killed in the middle of one, or of its export, leaves no part behind without its whole."""

    def __init__(self, following: SpanProcessor) -> None:
        self._following = following
        self._commands: dict[int, _Command] = {}
        """Of each span that has not ended, the command that it belongs to."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        parent = span.parent
        if parent is None or parent.is_remote:
            self._commands[_id(span)] = _Command()
        elif parent.span_id in self._commands:
            self._commands[_id(span)] = self._commands[parent.span_id]

    def on_end(self, span: ReadableSpan) -> None:
        command = self._commands.pop(_id(span), None)
        is_part = span.parent is not None and not span.parent.is_remote
        if is_part and command is not None and not command.ended:
            command.parts.append(span)
            return
        self._following.on_end(span)
        if command is None or is_part:
            return
        command.ended = True
        for part in command.parts:
            self._following.on_end(part)

    def shutdown(self) -> None:
        self._following.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._following.force_flush(timeout_millis)


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    if context is None:
        raise TypeError("a span that is recorded has a context")
    return context.span_id
