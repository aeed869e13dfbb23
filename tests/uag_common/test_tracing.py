"""The span of a request: whose trace it is, what it tells, and that it ends whatever happens."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import AsyncIterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from uag_common.errors import InvalidRequestError, PeerUnavailableError
from uag_common.tracing import RequestLabels, current_traceparent, request_span, service_tracer

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"
LABELS = RequestLabels("request-7", 3, (("team", "blue"), ("uag.request.id", "forged")))


class Recorder:
    """A tracer, and the spans of it that have ended."""

    def __init__(self) -> None:
        provider, self._exporter = TracerProvider(), InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    @property
    def only(self) -> ReadableSpan:
        (span,) = self.ended
        return span


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_a_request_tells_what_it_says_of_itself(recorder: Recorder) -> None:
    with request_span(recorder.tracer, "Orchestrator/Generate", "", LABELS) as trace_id:
        assert not recorder.ended
    span = recorder.only
    assert (span.name, span.kind) == ("Orchestrator/Generate", trace.SpanKind.SERVER)
    assert dict(span.attributes or {}) == {
        "uag.request.id": "request-7",
        "uag.priority": 3,
        "uag.metadata.team": "blue",
        "uag.metadata.uag.request.id": "forged",
        "rpc.response.status_code": "OK",
    }
    assert span.to_json().count(trace_id) == 1
    assert span.parent is None


def test_what_is_not_given_is_not_told(recorder: Recorder) -> None:
    with request_span(recorder.tracer, "Generate", "", RequestLabels("r")):
        pass
    assert set(recorder.only.attributes or {}) == {"uag.request.id", "rpc.response.status_code"}


def test_the_caller_s_trace_goes_on(recorder: Recorder) -> None:
    with request_span(recorder.tracer, "Generate", TRACEPARENT, LABELS) as trace_id:
        assert trace_id == TRACE_ID
        handed_on = current_traceparent()
    span = recorder.only
    assert span.parent is not None
    assert trace.format_span_id(span.parent.span_id) == PARENT_ID
    told = re.fullmatch(f"00-{TRACE_ID}-([0-9a-f]{{16}})-0[0-9a-f]", handed_on)
    assert told is not None
    assert f'"span_id": "0x{told[1]}"' in span.to_json()
    assert current_traceparent() == ""


@pytest.mark.parametrize(
    "traceparent",
    ["", "nonsense", f"00-{'0' * 32}-{PARENT_ID}-01", TRACEPARENT.upper(), TRACEPARENT * 2, "ü"],
)
def test_without_a_valid_one_each_request_has_a_trace_of_its_own(
    recorder: Recorder, traceparent: str
) -> None:
    ids = set()
    for _ in range(10):
        with request_span(recorder.tracer, "Generate", traceparent, LABELS) as trace_id:
            assert re.fullmatch("[0-9a-f]{32}", trace_id)
            ids.add(trace_id)
    assert len(ids) == 10
    assert "0" * 32 not in ids
    assert all(span.parent is None for span in recorder.ended)


def test_a_request_is_no_part_of_what_happens_to_go_on(recorder: Recorder) -> None:
    with (
        recorder.tracer.start_as_current_span("something"),
        request_span(recorder.tracer, "Generate", "", LABELS),
    ):
        pass
    request, _ = recorder.ended
    assert request.parent is None


@pytest.mark.parametrize(
    ("error", "status", "ours"),
    [
        (InvalidRequestError("chat", "the secret prompt"), "INVALID_ARGUMENT", False),
        (PeerUnavailableError("the secret prompt"), "UNAVAILABLE", True),
        (ValueError("the secret prompt"), "INTERNAL", True),
        (asyncio.CancelledError("the secret prompt"), "CANCELLED", False),
    ],
)
def test_a_failed_request_tells_its_status_and_nothing_of_its_text(
    recorder: Recorder, error: BaseException, status: str, ours: bool
) -> None:
    with (
        pytest.raises(type(error)),
        request_span(recorder.tracer, "Generate", "", LABELS),
    ):
        raise error
    span = recorder.only
    assert dict(span.attributes or {})["rpc.response.status_code"] == status
    assert dict(span.attributes or {})["error.type"] == status
    assert (span.status.status_code is trace.StatusCode.ERROR) is ours
    assert "secret" not in span.to_json()
    assert not span.events


async def answer(recorder: Recorder) -> AsyncIterator[str]:
    """As a servicer does it: the span stands around the answers."""
    with request_span(recorder.tracer, "Generate", "", LABELS):
        yield current_traceparent()
        await asyncio.sleep(60)
        yield "never"


async def test_a_cancelled_request_ends_its_span(recorder: Recorder) -> None:
    async def consume() -> None:
        async for _ in answer(recorder):
            pass

    task = asyncio.ensure_future(consume())
    await asyncio.sleep(0.01)
    assert not recorder.ended
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert dict(recorder.only.attributes or {})["rpc.response.status_code"] == "CANCELLED"


async def test_a_request_that_is_dropped_between_answers_ends_its_span(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """The generator is then closed by another task than began it."""

    async def take_one() -> None:
        async for _ in answer(recorder):
            raise ConnectionError("the client is gone")

    with pytest.raises(ConnectionError):
        await asyncio.ensure_future(take_one())
    gc.collect()
    await asyncio.sleep(0.1)
    assert dict(recorder.only.attributes or {})["rpc.response.status_code"] == "CANCELLED"
    assert not caplog.records


async def test_requests_side_by_side_do_not_see_each_other(recorder: Recorder) -> None:
    async def one() -> tuple[str, str]:
        with request_span(recorder.tracer, "Generate", "", LABELS) as trace_id:
            await asyncio.sleep(0.01)
            work = asyncio.create_task(asyncio.sleep(0, current_traceparent()))
            return trace_id, await work

    for trace_id, handed_on in await asyncio.gather(*(one() for _ in range(20))):
        assert handed_on.split("-")[1] == trace_id


@pytest.mark.parametrize(
    "setting", ["", "OTEL_SDK_DISABLED=true", "OTEL_TRACES_SAMPLER=always_off"]
)
@pytest.mark.parametrize("traceparent", ["", TRACEPARENT])
def test_ids_are_valid_though_nothing_is_exported(
    monkeypatch: pytest.MonkeyPatch, setting: str, traceparent: str
) -> None:
    if setting:
        monkeypatch.setenv(*setting.split("="))
    tracer = service_tracer("orchestrator")
    with request_span(tracer, "Generate", traceparent, LABELS) as trace_id:
        assert re.fullmatch("[0-9a-f]{32}", trace_id)
        assert trace_id != "0" * 32
        assert current_traceparent().split("-")[1] == trace_id
    assert not traceparent or trace_id == TRACE_ID
