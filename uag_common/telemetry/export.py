"""Where the spans of a process go: nowhere, or to a collector by OTLP over gRPC.

Set up by OpenTelemetry's own variables alone. Export happens on a thread of its own, which drops
the oldest spans where the collector does not keep up: it never holds up a request.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from uag_common.errors import StartError
from uag_common.telemetry.whole_commands import WholeCommands

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTERS = ("otlp", "none")
SAMPLERS = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)

LAST_EXPORT_SECONDS = 2.0
"""At the end of a process; a collector that is away must not hold it up."""

_NAME = "uag"


class Tracing:
    """The tracer of a process, and the end of its export."""

    def __init__(self, provider: TracerProvider | None) -> None:
        self._provider = provider
        self.tracer: trace.Tracer = (
            trace.NoOpTracer() if provider is None else provider.get_tracer(_NAME)
        )

    @classmethod
    def start(
        cls, service_name: str, environ: Mapping[str, str], *, by_command: bool = False
    ) -> Tracing:
        """By the OTEL_* variables; without them nothing is recorded. `by_command`: spans leave
        when their command ends, not one by one. Raises StartError that names the variable and the
        remedy."""
        if not _wanted(environ):
            return cls(None)
        _check_sampler(environ)
        # What is not exported is not loaded: it takes a third of a second.
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        provider = TracerProvider(resource=_resource(service_name), shutdown_on_exit=False)
        try:
            exporting: SpanProcessor = BatchSpanProcessor(OTLPSpanExporter())
        except ValueError as error:
            raise StartError(f"OTEL_BSP_... or OTEL_EXPORTER_OTLP_...: {error}") from error
        provider.add_span_processor(WholeCommands(exporting) if by_command else exporting)
        return cls(provider)

    def close(self) -> None:
        """Exports what is left, within LAST_EXPORT_SECONDS."""
        if self._provider is None:
            return
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(LAST_EXPORT_SECONDS)


def _wanted(environ: Mapping[str, str]) -> bool:
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if exporter:
        _check("OTEL_TRACES_EXPORTER", exporter, EXPORTERS)
    elif not any(environ.get(name) for name in ENDPOINTS):
        return False
    if exporter == "none":
        return False
    for name in PROTOCOLS:
        _check(name, environ.get(name) or "grpc", ("grpc",))
    return True


def _check_sampler(environ: Mapping[str, str]) -> None:
    """The library takes what it does not know for its default, with a warning."""
    name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
    sampler = environ.get(name, "").strip()
    if not sampler:
        return
    _check(name, sampler, SAMPLERS)
    if sampler.endswith("ratio") and not _is_share(environ.get(argument) or "1"):
        raise StartError(f"{argument}={environ[argument]}: must be a number from 0 to 1")


def _check(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise StartError(f"{name}={value}: must be {' or '.join(options)}")


def _is_share(text: str) -> bool:
    try:
        return 0.0 <= float(text) <= 1.0
    except ValueError:
        return False


def _resource(service_name: str) -> Resource:
    """The variables win over what is said here."""
    theirs = Resource.create()
    named = not str(theirs.attributes.get("service.name", "")).startswith(_UNNAMED)
    ours = Resource({"service.version": version("uag")}).merge(theirs)
    return ours if named else ours.merge(Resource({"service.name": service_name}))


_UNNAMED = "unknown_service"
"""What the library calls a process that nobody named."""
