"""What a process needs to be seen, put together once: in its `__main__`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry.trace import NoOpTracer, Tracer

from uag_common.service_settings import ServiceSettings
from uag_common.settings import variable_name
from uag_common.telemetry.export import Tracing
from uag_common.telemetry.metrics import MetricsPage, RoleRegistry, new_registry

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """`role` is "orchestrator", "draft" or "verify"."""

    role: str
    tracer: Tracer
    registry: RoleRegistry

    @classmethod
    def unseen(cls, role: str) -> Telemetry:
        """Counts, and shows nobody."""
        return cls(role, NoOpTracer(), new_registry(role))


@contextmanager
def shown(role: str, settings: ServiceSettings) -> Iterator[Telemetry]:
    """As long as the process is seen: spans go where the OTEL_* variables say, metrics are read
    where the settings say. Raises StartError."""
    # A request of the orchestrator is long and has too many spans to be held back.
    tracing = Tracing.start(f"uag-{role}", os.environ, by_command=role != "orchestrator")
    registry = new_registry(role)
    page = _page(settings, registry)
    try:
        yield Telemetry(role, tracing.tracer, registry)
    finally:
        if page is not None:
            page.close()
        tracing.close()


def _page(settings: ServiceSettings, registry: RoleRegistry) -> MetricsPage | None:
    if settings.metrics_listen is None:
        return None
    setting = variable_name(type(settings), "metrics_listen")
    page = MetricsPage(settings.metrics_listen, registry, setting)
    log.info("metrics on port %d", page.port)
    return page
