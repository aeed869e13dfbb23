"""Spans: whose trace it is, what is inside what, how they end, and what they cost where nothing is
recorded."""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import NoOpTracer

from tests.telemetry.recorder import Recorder
from uag_common.errors import InvalidRequestError, PeerUnavailableError
from uag_common.telemetry.spans import (
    client_span,
    current_trace_id,
    current_traceparent,
    inner_span,
    past_span,
    server_span,
    tell,
    unrecorded,
)

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"
UNSAMPLED = f"00-{TRACE_ID}-{PARENT_ID}-00"
STATUS = "rpc.response.status_code"


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def span_id(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    return trace.format_span_id(context.span_id)


def test_a_request_tells_what_is_said_of_it_then_and_later(recorder: Recorder) -> None:
    with server_span(recorder.tracer, "Orchestrator/Generate", "", {"uag.round": 3}):
        tell({"uag.accepted": 2})
        assert not recorder.ended
    span = recorder.only
    assert (span.name, span.kind) == ("Orchestrator/Generate", trace.SpanKind.SERVER)
    assert attributes(span) == {"uag.round": 3, "uag.accepted": 2, STATUS: "OK"}
    assert span.parent is None


def test_the_caller_s_trace_goes_on(recorder: Recorder) -> None:
    with server_span(recorder.tracer, "Generate", TRACEPARENT):
        assert current_trace_id() == TRACE_ID
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
        with server_span(recorder.tracer, "Generate", traceparent):
            assert re.fullmatch("[0-9a-f]{32}", current_trace_id())
            ids.add(current_trace_id())
    assert len(ids) == 10
    assert "0" * 32 not in ids
    assert all(span.parent is None for span in recorder.ended)


def test_a_request_is_no_part_of_what_happens_to_go_on(recorder: Recorder) -> None:
    with (
        recorder.tracer.start_as_current_span("something"),
        server_span(recorder.tracer, "Generate", ""),
    ):
        pass
    request, _ = recorder.ended
    assert request.parent is None


def test_what_happens_inside_is_inside(recorder: Recorder) -> None:
    with server_span(recorder.tracer, "Generate", ""), inner_span("round"):
        with client_span("verify", {"server.port": 1}):
            told = current_traceparent()
        began = time.perf_counter()
        past_span("queue", began - 0.25, began)
    verify, queue, round_, root = recorder.ended
    for child, parent in ((verify, round_), (queue, round_), (round_, root)):
        assert child.parent is not None
        assert child.parent == parent.get_span_context()
    assert verify.kind is trace.SpanKind.CLIENT
    assert attributes(verify) == {"server.port": 1, STATUS: "OK"}
    assert told.split("-")[2] == span_id(verify)
    assert queue.start_time is not None
    assert queue.end_time is not None
    assert queue.end_time - queue.start_time == pytest.approx(0.25e9, rel=1e-3)
    assert abs(queue.end_time - time.time_ns()) < 1e9


def test_tasks_that_are_begun_inside_are_inside(recorder: Recorder) -> None:
    async def prefill() -> None:
        with inner_span("draft.open"):
            await asyncio.sleep(0)

    async def request() -> None:
        with server_span(recorder.tracer, "Generate", ""):
            task = asyncio.create_task(prefill())
            await asyncio.sleep(0)
        await task

    asyncio.run(request())
    opened, root = recorder.named("draft.open"), recorder.named("Generate")
    assert opened.parent == root.get_span_context()


def test_what_is_too_much_is_not_recorded_here_nor_elsewhere(recorder: Recorder) -> None:
    with server_span(recorder.tracer, "Generate", TRACEPARENT), unrecorded():
        with inner_span("round"), client_span("verify"):
            told = current_traceparent()
        tell({"uag.round": 1000})
        past_span("queue", 0.0, 1.0)
        assert current_trace_id() == TRACE_ID
    span = recorder.only
    assert span.name == "Generate"
    assert "uag.round" not in attributes(span)
    assert told == f"00-{TRACE_ID}-{span_id(span)}-00"


@pytest.mark.parametrize("traceparent", ["", UNSAMPLED])
def test_where_nothing_is_recorded_nothing_is_made(traceparent: str) -> None:
    with server_span(NoOpTracer(), "Generate", traceparent):
        before, trace_id = current_traceparent(), current_trace_id()
        with inner_span("round"), client_span("verify"):
            past_span("queue", 0.0, 1.0)
            assert current_traceparent() == before
    assert before.endswith("-00")
    assert trace_id != "0" * 32
    assert not traceparent or traceparent == before


FAILURES = [
    (InvalidRequestError("chat", "the secret prompt"), "INVALID_ARGUMENT", False),
    (PeerUnavailableError("the secret prompt"), "UNAVAILABLE", True),
    (ValueError("the secret prompt"), "INTERNAL", True),
    (asyncio.CancelledError("the secret prompt"), "CANCELLED", False),
    (GeneratorExit("the secret prompt"), "CANCELLED", False),
]


@pytest.mark.parametrize(("error", "status", "ours"), FAILURES)
def test_a_failed_request_tells_its_status_and_nothing_of_its_text(
    recorder: Recorder, error: BaseException, status: str, ours: bool
) -> None:
    with pytest.raises(type(error)), server_span(recorder.tracer, "Generate", ""):
        raise error
    span = recorder.only
    assert attributes(span) == {STATUS: status, "error.type": status}
    assert (span.status.status_code is trace.StatusCode.ERROR) is ours
    assert "secret" not in span.to_json()
    assert not span.events


@pytest.mark.parametrize(("error", "status", "ours"), FAILURES)
@pytest.mark.parametrize("span_of", [client_span, inner_span])
def test_a_failed_part_tells_its_status_and_nothing_of_its_text(
    recorder: Recorder,
    error: BaseException,
    status: str,
    ours: bool,
    span_of: Callable[[str], AbstractContextManager[object]],
) -> None:
    with (
        pytest.raises(type(error)),
        server_span(recorder.tracer, "Generate", ""),
        span_of("part"),
    ):
        raise error
    span = recorder.named("part")
    assert attributes(span)["error.type"] == status
    # To a client every status but OK is an error, unless it gave up itself.
    is_error = span.status.status_code is trace.StatusCode.ERROR
    assert is_error is (ours or (span_of is client_span and status != "CANCELLED"))
    assert "secret" not in span.to_json()


def test_the_edge_may_know_the_status_better(recorder: Recorder) -> None:
    def status(error: BaseException) -> str:
        assert isinstance(error, asyncio.CancelledError)
        return "DEADLINE_EXCEEDED"

    with (
        pytest.raises(asyncio.CancelledError),
        server_span(recorder.tracer, "Generate", "", status=status),
    ):
        raise asyncio.CancelledError
    assert attributes(recorder.only)[STATUS] == "DEADLINE_EXCEEDED"
    assert recorder.only.status.status_code is trace.StatusCode.ERROR


async def answer(recorder: Recorder) -> AsyncIterator[str]:
    """As a servicer does it: the span stands around the answers."""
    with server_span(recorder.tracer, "Generate", ""):
        yield current_traceparent()
        with inner_span("round"):
            await asyncio.sleep(60)
        yield "never"


async def test_a_cancelled_request_ends_its_spans(recorder: Recorder) -> None:
    async def consume() -> None:
        async for _ in answer(recorder):
            pass

    task = asyncio.ensure_future(consume())
    await asyncio.sleep(0.01)
    assert not recorder.ended
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert attributes(recorder.named("Generate"))[STATUS] == "CANCELLED"
    assert attributes(recorder.named("round"))["error.type"] == "CANCELLED"


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
    assert attributes(recorder.only)[STATUS] == "CANCELLED"
    # Threads of other tests may still be looking for their collectors.
    told = [record for record in caplog.records if ".exporter." not in record.name]
    assert not told


async def test_requests_side_by_side_do_not_see_each_other(recorder: Recorder) -> None:
    async def one() -> tuple[str, str]:
        with server_span(recorder.tracer, "Generate", ""), inner_span("round"):
            await asyncio.sleep(0.01)
            work = asyncio.create_task(asyncio.sleep(0, current_traceparent()))
            return current_trace_id(), await work

    for trace_id, handed_on in await asyncio.gather(*(one() for _ in range(20))):
        assert handed_on.split("-")[1] == trace_id
