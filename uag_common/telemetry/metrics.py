"""The metrics of a process, and the page where Prometheus reads them.

Knows prometheus_client and no service. A registry belongs to a process's composition, not to the
library's global one: what runs in one process for a test does not count together.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import prometheus_client
from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from uag_common.addresses import check_listen, family_of
from uag_common.errors import StartError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

MOST_CONNECTIONS = 32
"""To the page of metrics; one more is closed."""

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
        host, port = check_listen(listen, setting)
        try:
            self._server = _Server(host, port, registry)
        except OSError as error:
            raise StartError(f"cannot listen on {listen} ({error}), see {setting}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(WSGIRequestHandler):
    """Gives up on who says nothing, and writes no log of its own."""

    timeout = 5.0

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the library's name


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection, and few connections: they must not take the files of the
    process from its calls."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self.address_family = family_of(host)
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((host.strip("[]"), port), _Handler)
        self.set_app(partial(_page, registry))

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no event."""


def _page(
    registry: CollectorRegistry, environ: WSGIEnvironment, start_response: StartResponse
) -> list[bytes]:
    # No part of it by name, as the library has it: that would go round the role.
    if environ.get("PATH_INFO") != "/metrics":
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"metrics are at /metrics\n"]
    encoder, content_type = choose_encoder(environ.get("HTTP_ACCEPT", ""))
    page: bytes = encoder(registry)
    start_response("200 OK", [("Content-Type", content_type)])
    return [page]
