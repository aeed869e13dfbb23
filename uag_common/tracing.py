"""The trace of a request: one server span from its start to its end, whatever end that is.

Knows OpenTelemetry and no gRPC. Nothing of a prompt or an answer may get into a span, so a failure
is told by its status and not by its message. Nothing is exported unless an exporter is added to the
provider; ids are valid all the same, since clients are told them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import context as current
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from uag_common.errors import UagError

_W3C = TraceContextTextMapPropagator()
_IDS = RandomIdGenerator()

_OUR_FAULT = ("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED")
"""By OpenTelemetry's conventions for gRPC, a client's mistake is no error of a server's span."""


@dataclass(frozen=True, slots=True)
class RequestLabels:
    """What a request says of itself for its trace. `metadata`: keys and values."""

    request_id: str
    priority: int | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    def attributes(self) -> dict[str, str | int]:
        """As attributes of a span."""
        told: dict[str, str | int] = {f"uag.metadata.{key}": value for key, value in self.metadata}
        told["uag.request.id"] = self.request_id
        if self.priority is not None:
            told["uag.priority"] = self.priority
        return told


def service_tracer(service: str) -> trace.Tracer:
    """The tracer of a process; the standard OTEL_* variables add to the resource or turn it off."""
    return TracerProvider(resource=Resource.create({"service.name": service})).get_tracer("uag")


@contextmanager
def request_span(
    tracer: trace.Tracer, name: str, traceparent: str, labels: RequestLabels
) -> Iterator[str]:
    """The span of a request, current inside; yields its trace id, 32 hexadecimal digits.

    `traceparent` is the caller's, whose trace goes on; without a valid one a trace begins here. May
    stand around the yields of an asynchronous generator, which another task may have to close.
    """
    caller = _W3C.extract({"traceparent": traceparent}, current.Context())
    span = tracer.start_span(name, caller, trace.SpanKind.SERVER, labels.attributes())
    if not span.get_span_context().is_valid:
        span = _unrecorded()
    before = current.get_current()
    current.attach(trace.set_span_in_context(span))
    try:
        yield trace.format_trace_id(span.get_span_context().trace_id)
        _tell(span, "OK")
    except BaseException as error:
        _tell(span, _status(error))
        raise
    finally:
        # Not detached: a token of one task is no use to another, which may be the one to get here.
        current.attach(before)
        span.end()


def current_traceparent() -> str:
    """The W3C trace context of the current span, for the messages of a session; empty outside."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get("traceparent", "")


def _unrecorded() -> trace.Span:
    """Where tracing is turned off, ids that a client can quote all the same."""
    trace_id, span_id = _IDS.generate_trace_id(), _IDS.generate_span_id()
    return trace.NonRecordingSpan(trace.SpanContext(trace_id, span_id, is_remote=False))


def _tell(span: trace.Span, status: str) -> None:
    span.set_attribute("rpc.response.status_code", status)
    if status != "OK":
        span.set_attribute("error.type", status)
    if status in _OUR_FAULT:
        span.set_status(trace.StatusCode.ERROR, status)


def _status(error: BaseException) -> str:
    if isinstance(error, UagError):
        return error.status
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    return "INTERNAL"
