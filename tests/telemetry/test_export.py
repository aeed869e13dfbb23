"""Which variables turn the export on, which ones stop the process, and that a collector which is
away holds up nothing."""

from __future__ import annotations

import re
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from uag_common.errors import StartError
from uag_common.telemetry.export import LAST_EXPORT_SECONDS, Tracing
from uag_common.telemetry.spans import (
    current_trace_id,
    current_traceparent,
    inner_span,
    server_span,
)
from uag_common.telemetry.whole_commands import WholeCommands

NOBODY = "http://127.0.0.1:9"
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": NOBODY}


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def started(environ: pytest.MonkeyPatch, **variables: str) -> Tracing:
    # Or exporters would still look for their collectors, and say so, in the tests after these.
    environ.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    for name, value in variables.items():
        environ.setenv(name, value)
    return Tracing.start("uag-test", variables)


def is_recorded(tracing: Tracing, traceparent: str = "") -> bool:
    with server_span(tracing.tracer, "Generate", traceparent):
        return trace.get_current_span().is_recording()


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": NOBODY}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, False),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, True),
        (ENDPOINT | {"OTEL_TRACES_SAMPLER": "always_off"}, False),
        (
            ENDPOINT | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
            False,
        ),
    ],
)
def test_only_the_standard_variables_turn_it_on(
    environ: pytest.MonkeyPatch, variables: dict[str, str], wanted: bool
) -> None:
    tracing = started(environ, **variables)
    try:
        assert is_recorded(tracing) is wanted
    finally:
        tracing.close()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"),
        (
            ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ),
        (ENDPOINT | {"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER"),
        (
            ENDPOINT | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10%"},
            "OTEL_TRACES_SAMPLER_ARG",
        ),
        (
            ENDPOINT | {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
            "OTEL_TRACES_SAMPLER_ARG",
        ),
    ],
)
def test_a_variable_that_means_nothing_stops_the_process_with_its_name(
    variables: dict[str, str], name: str
) -> None:
    with pytest.raises(StartError, match=f"^{name}=.*: must be "):
        Tracing.start("uag-test", variables)


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "uag-test"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=other,k8s.pod.name=p"}, "other"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=p"}, "uag-test"),
    ],
)
def test_the_variables_win_over_the_name_that_a_service_gives_itself(
    environ: pytest.MonkeyPatch, variables: dict[str, str], name: str
) -> None:
    tracing = started(environ, **ENDPOINT, **variables)
    try:
        provider = tracing._provider
        assert isinstance(provider, TracerProvider)
        assert provider.resource.attributes["service.name"] == name
        assert provider.resource.attributes["service.version"]
        pod = provider.resource.attributes.get("k8s.pod.name")
        assert (pod == "p") is ("p" in str(variables.values()))
    finally:
        tracing.close()


def test_the_caller_decides_whether_a_trace_is_recorded(environ: pytest.MonkeyPatch) -> None:
    """By default, and by a ratio with the word parentbased."""
    tracing = started(
        environ,
        **ENDPOINT,
        OTEL_TRACES_SAMPLER="parentbased_traceidratio",
        OTEL_TRACES_SAMPLER_ARG="0",
    )
    caller = f"00-{'a' * 32}-{'b' * 16}-"
    try:
        assert is_recorded(tracing, caller + "01")
        assert not is_recorded(tracing, caller + "00")
        assert not is_recorded(tracing)
    finally:
        tracing.close()


@pytest.mark.parametrize("variables", [{}, ENDPOINT | {"OTEL_TRACES_SAMPLER": "always_off"}])
def test_ids_are_valid_though_nothing_is_exported(
    environ: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    tracing = started(environ, **variables)
    try:
        with server_span(tracing.tracer, "Generate", ""):
            assert re.fullmatch("(?!0{32})[0-9a-f]{32}", current_trace_id())
            assert current_traceparent().split("-")[1] == current_trace_id()
            sampled = int(current_traceparent().split("-")[3], 16) & 1
            assert not sampled
    finally:
        tracing.close()


def test_a_collector_that_is_away_holds_up_neither_spans_nor_the_end(
    environ: pytest.MonkeyPatch,
) -> None:
    tracing = started(environ, **ENDPOINT, OTEL_BSP_MAX_QUEUE_SIZE="600")
    began = time.perf_counter()
    for _ in range(5_000):
        assert is_recorded(tracing)
    recorded = time.perf_counter()
    tracing.close()
    closed = time.perf_counter()
    # Export would take seconds each time.
    assert recorded - began < 5
    assert closed - recorded < LAST_EXPORT_SECONDS + 1


def test_the_parts_of_a_command_leave_after_it_and_with_it() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(WholeCommands(SimpleSpanProcessor(exporter)))
    tracer, caller = provider.get_tracer("test"), f"00-{'a' * 32}-{'b' * 16}-01"

    def names() -> list[str]:
        return [span.name for span in exporter.get_finished_spans()]

    with server_span(tracer, "first", caller):
        with inner_span("part"), inner_span("part of it"):
            pass
        with server_span(tracer, "second", caller), inner_span("other part"):
            pass
        assert names() == ["second", "other part"]
    assert names() == ["second", "other part", "first", "part of it", "part"]


def test_a_part_that_outlasts_its_command_is_not_lost() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(WholeCommands(SimpleSpanProcessor(exporter)))
    tracer = provider.get_tracer("test")
    command = tracer.start_span("command")
    late = tracer.start_span("late", trace.set_span_in_context(command))
    command.end()
    late.end()
    assert [span.name for span in exporter.get_finished_spans()] == ["command", "late"]
