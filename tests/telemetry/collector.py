"""A collector of traces in the test's own process: receives OTLP over gRPC, as Jaeger does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

Value = str | int | float | bool | tuple[str, ...]

CLOCK_NS = 2_000_000
"""Two processes of one machine, and a span that is made afterwards, tell times that far apart."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span as it came over the wire. `parent_id` is empty for a root."""

    name: str
    service: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    began: int
    ended: int
    attributes: dict[str, Value]
    error: str | None
    """The status's message where it is an error."""

    @property
    def status(self) -> Value | None:
        return self.attributes.get("rpc.response.status_code")

    def of(self, name: str) -> int:
        """An attribute that is a whole number."""
        value = self.attributes[name]
        assert isinstance(value, int), (name, value)
        return value


class Trace:
    """The spans of one trace, as they began."""

    def __init__(self, spans: tuple[Span, ...]) -> None:
        self.spans = tuple(sorted(spans, key=lambda span: span.began))
        self._by_id = {span.span_id: span for span in self.spans}

    @property
    def root(self) -> Span:
        """The one span whose parent is not here."""
        (root,) = (span for span in self.spans if span.parent_id not in self._by_id)
        return root

    def children(self, parent: Span) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.parent_id == parent.span_id)

    def child(self, parent: Span, name: str) -> Span:
        (child,) = (span for span in self.children(parent) if span.name == name)
        return child

    def named(self, name: str) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.name == name)

    def outline(self, span: Span | None = None) -> str:
        """The tree as text, for the message of a failed test."""
        root = span or self.root
        lines = [f"{root.service} {root.name} {root.attributes} {root.error or ''}"]
        for child in self.children(root):
            lines += ["  " + line for line in self.outline(child).splitlines()]
        return "\n".join(lines)


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it gets. `delay_seconds` makes it slow, `status` makes it fail."""

    def __init__(self) -> None:
        self.delay_seconds = 0.0
        self.status: grpc.StatusCode | None = None
        self.raw: list[bytes] = []
        self._spans: list[Span] = []
        self._lock = Lock()

    def Export(  # noqa: N802 - named by the protocol
        self, request: pb.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> pb.ExportTraceServiceResponse:
        time.sleep(self.delay_seconds)
        if self.status is not None:
            context.abort(self.status, "the collector is away")
        with self._lock:
            self.raw.append(request.SerializeToString())
            self._spans.extend(_spans(request))
        return pb.ExportTraceServiceResponse()

    def spans(self) -> tuple[Span, ...]:
        with self._lock:
            return tuple(self._spans)

    def trace(self, trace_id: str, *, some_lost: bool = False, seconds: float = 10) -> Trace:
        """The trace, once it is whole: what comes late waits for its exporter. `some_lost`: a
        process was killed with the last of its spans, so no more is asked than a root and no
        orphan."""
        deadline = time.monotonic() + seconds
        while True:
            trace = Trace(tuple(s for s in self.spans() if s.trace_id == trace_id))
            if _has_no_orphan(trace) and (some_lost or _has_all_commands(trace)):
                return trace
            if time.monotonic() > deadline:
                raise TimeoutError(f"not whole after {seconds} s: {_told(trace)}")
            time.sleep(0.05)


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """A running collector and its address."""
    server, collector = grpc.server(ThreadPoolExecutor(8)), Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector, f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def _has_no_orphan(trace: Trace) -> bool:
    ids = {span.span_id for span in trace.spans}
    outside = [span for span in trace.spans if span.parent_id not in ids]
    return len(outside) == 1 and outside[0].kind == "SERVER"


def _has_all_commands(trace: Trace) -> bool:
    """With what is inside them: that of the last may come later than the root."""
    done = (span for span in trace.spans if span.status == "OK" and span is not trace.root)
    commands = (span for span in done if span.kind in ("CLIENT", "SERVER"))
    # A session that finds all of its context in a cache runs nothing when it is opened.
    return all(trace.children(span) or span.attributes.get("uag.cache.found") for span in commands)


def _told(trace: Trace) -> str:
    return "\n".join(
        f"{span.service} {span.name} {span.span_id} in {span.parent_id}" for span in trace.spans
    )


def _spans(request: pb.ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in request.resource_spans:
        service = str(_attributes(resource.resource.attributes)["service.name"])
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _span(service, span)


def _span(service: str, span: SpanMessage) -> Span:
    failed = span.status.code == Status.STATUS_CODE_ERROR
    return Span(
        name=span.name,
        service=service,
        kind=SpanMessage.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        error=span.status.message if failed else None,
    )


def _attributes(pairs: Sequence[KeyValue]) -> dict[str, Value]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(item.string_value for item in value.array_value.values)
    told: Value = getattr(value, kind or "string_value")
    return told
