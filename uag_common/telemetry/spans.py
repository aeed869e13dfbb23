"""Spans: what is inside what, when it began and ended, and how.

Knows OpenTelemetry's API and no gRPC. Nothing of a prompt or an answer may get into a span, so a
failure is told by its status and not by its message.

The tracer travels with the span that it made, in the context of a task: what happens inside needs
no tracer of its own, and costs next to nothing where nothing is recorded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import context as current
from opentelemetry import trace
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from uag_common.errors import UagError
from uag_common.telemetry.attributes import ERROR_TYPE, RPC_STATUS

Attributes = Mapping[str, str | int | float | Sequence[str]]

_W3C = TraceContextTextMapPropagator()
_IDS = RandomIdGenerator()
_TRACER = current.create_key("uag-tracer")

_ODD = frozenset("13579bdf")
"""The last hexadecimal digits of flags with the lowest bit: sampled."""

_OUR_FAULT = ("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "UNIMPLEMENTED")
"""By OpenTelemetry's conventions for gRPC, a client's mistake is no error of a server's span."""


@contextmanager
def server_span(
    tracer: trace.Tracer,
    name: str,
    traceparent: str,
    attributes: Attributes | None = None,
    status: Callable[[BaseException], str] | None = None,
) -> Iterator[trace.Span]:
    """The span of a request or a command, current inside. It is told its status at the end: for a
    failure the one that `status` makes of it, `status_of` if there is none.

    `traceparent` is the caller's, whose trace goes on; without a valid one a trace begins here. May
    stand around the yields of an asynchronous generator, which another task may have to close.
    """
    caller = _W3C.extract({"traceparent": traceparent}, current.Context())
    span = tracer.start_span(name, caller, trace.SpanKind.SERVER, attributes)
    if not span.get_span_context().is_valid:
        span = _unrecorded()
    with _current(span, tracer):
        try:
            yield span
            _tell(span, "OK", _OUR_FAULT)
        except BaseException as error:
            _tell(span, (status or status_of)(error), _OUR_FAULT)
            raise
        finally:
            span.end()


def is_sampled(traceparent: str) -> bool:
    """Whether the caller records its span."""
    flags = traceparent[-2:]
    return len(flags) == 2 and flags[1] in _ODD


def is_recording() -> bool:
    """Whether anything that is said here is kept."""
    return trace.get_current_span().is_recording()


def join(traceparent: str) -> None:
    """The task goes on in the caller's trace, to be found by it in the log; nothing is recorded."""
    current.attach(_W3C.extract({"traceparent": traceparent}, current.Context()))


@contextmanager
def client_span(name: str, attributes: Attributes | None = None) -> Iterator[trace.Span]:
    """A call to another service, inside the current span. By the conventions every status but OK is
    an error to a client; what the client itself gave up is none."""
    with _inside(name, trace.SpanKind.CLIENT, attributes) as span:
        try:
            yield span
            _tell(span, "OK", ())
        except BaseException as error:
            status = status_of(error)
            _tell(span, status, () if status == "CANCELLED" else (status,))
            raise


@contextmanager
def inner_span(name: str, attributes: Attributes | None = None) -> Iterator[trace.Span]:
    """A part of the current span."""
    with _inside(name, trace.SpanKind.INTERNAL, attributes) as span:
        try:
            yield span
        except BaseException as error:
            status = status_of(error)
            span.set_attribute(ERROR_TYPE, status)
            if status in _OUR_FAULT:
                span.set_status(trace.StatusCode.ERROR, status)
            raise


def past_span(name: str, began: float, ended: float, attributes: Attributes | None = None) -> None:
    """A part of the current span that is over; times are those of `time.perf_counter`."""
    tracer = _recording_tracer()
    if tracer is None:
        return
    to_epoch = time.time_ns() - time.perf_counter_ns()
    start = to_epoch + int(began * 1e9)
    span = tracer.start_span(name, attributes=attributes, start_time=start)
    span.end(to_epoch + int(ended * 1e9))


@contextmanager
def unrecorded() -> Iterator[None]:
    """Nothing inside is recorded, neither here nor by the services that are called from there."""
    if not trace.get_current_span().is_recording():
        yield
        return
    outer = trace.get_current_span().get_span_context()
    hidden = trace.SpanContext(outer.trace_id, outer.span_id, is_remote=False)
    with _current(trace.NonRecordingSpan(hidden), None):
        yield


def tell(attributes: Attributes) -> None:
    """Adds to what the current span tells."""
    trace.get_current_span().set_attributes(attributes)


def current_trace_id() -> str:
    """32 hexadecimal digits; zeros outside of any trace."""
    return trace.format_trace_id(trace.get_current_span().get_span_context().trace_id)


def current_traceparent() -> str:
    """The W3C trace context of the current span, for the messages of a session; empty outside."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get("traceparent", "")


def status_of(error: BaseException) -> str:
    """The gRPC status that a failure comes to."""
    if isinstance(error, UagError):
        return error.status
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    return "INTERNAL"


@contextmanager
def _inside(name: str, kind: trace.SpanKind, attributes: Attributes | None) -> Iterator[trace.Span]:
    tracer = _recording_tracer()
    if tracer is None:
        yield trace.INVALID_SPAN
        return
    span = tracer.start_span(name, kind=kind, attributes=attributes)
    with _current(span, tracer):
        try:
            yield span
        finally:
            span.end()


def _recording_tracer() -> trace.Tracer | None:
    """Where the current span is recorded, the tracer that made it."""
    if not trace.get_current_span().is_recording():
        return None
    tracer = current.get_value(_TRACER)
    return tracer if isinstance(tracer, trace.Tracer) else None


@contextmanager
def _current(span: trace.Span, tracer: trace.Tracer | None) -> Iterator[None]:
    before = current.get_current()
    current.attach(current.set_value(_TRACER, tracer, trace.set_span_in_context(span)))
    try:
        yield
    finally:
        # Not detached: a token of one task is no use to another, which may be the one to get here.
        current.attach(before)


def _unrecorded() -> trace.Span:
    """Where tracing is turned off, ids that a client can quote all the same."""
    trace_id, span_id = _IDS.generate_trace_id(), _IDS.generate_span_id()
    return trace.NonRecordingSpan(trace.SpanContext(trace_id, span_id, is_remote=False))


def _tell(span: trace.Span, status: str, errors: Sequence[str]) -> None:
    span.set_attribute(RPC_STATUS, status)
    if status != "OK":
        span.set_attribute(ERROR_TYPE, status)
    if status in errors:
        span.set_status(trace.StatusCode.ERROR, status)
