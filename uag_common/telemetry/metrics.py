"""The metrics of a process, and the page where Prometheus reads them.

Knows prometheus_client and no service. A registry belongs to a process's composition, not to the
library's global one: what runs in one process for a test does not count together.
"""

from __future__ import annotations

from collections.abc import Iterator
from wsgiref.simple_server import WSGIServer

import prometheus_client
from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Metric,
)

from uag_common.addresses import BadAddressError, check_free, split
from uag_common.errors import StartError

STEP_BUCKETS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
    *(0.75, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
)
"""Seconds of a step, a round, a token: from a draft's step on a GPU to a long prompt on a CPU."""

REQUEST_BUCKETS = (
    *(0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0),
    *(20.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
"""Seconds of a request."""


class RoleRegistry(CollectorRegistry):
    """Puts `role` on each sample, so that the three services can share names whatever the labels
    that a scrape adds."""

    def __init__(self, role: str) -> None:
        super().__init__(auto_describe=True)
        self._role = role

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            metric.samples = [
                sample._replace(labels={"role": self._role, **sample.labels})
                for sample in metric.samples
            ]
            yield metric


def new_registry(role: str) -> RoleRegistry:
    """With the figures of the process itself."""
    # Times of birth would double the number of series, and nobody asks for them.
    prometheus_client.disable_created_metrics()
    registry = RoleRegistry(role)
    for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
        registry.register(collector)
    return registry


class MetricsPage:
    """`GET /metrics` by HTTP, on threads of its own."""

    def __init__(self, listen: str, registry: CollectorRegistry, setting: str) -> None:
        """Binds `listen` ("host:port", port 0 takes a free one). Raises StartError that names the
        `setting`."""
        try:
            host, port = split(listen)
        except BadAddressError as error:
            raise StartError(f"{setting}: {error}") from error
        check_free(listen, f"stop it, or choose another address in {setting}")
        try:
            self._server: WSGIServer
            self._server, self._thread = prometheus_client.start_http_server(
                port, host.strip("[]"), registry
            )
        except OSError as error:
            raise StartError(f"cannot listen on {listen} ({error}), see {setting}") from error

    @property
    def port(self) -> int:
        return self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
