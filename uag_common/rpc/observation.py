"""Each call of our own services as it is seen from outside: counted by status, and in a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import get_args

from prometheus_client import Counter, Gauge

from uag_common.errors import Status
from uag_common.rpc.metadata import Context, traceparent
from uag_common.telemetry.attributes import RPC_METHOD, RPC_SYSTEM
from uag_common.telemetry.spans import server_span, status_of
from uag_common.telemetry.telemetry import Telemetry


class CallObserver:
    """Sees the calls of one process."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._tracer = telemetry.tracer
        self._known = cache(self._know)
        self._finished = Counter(
            "uag_requests",
            "Calls that ended, by gRPC status.",
            ("method", "status"),
            registry=telemetry.registry,
        )
        self._running = Gauge(
            "uag_requests_running",
            "Calls that are open.",
            ("method",),
            registry=telemetry.registry,
        )

    @contextmanager
    def request(self, method: str, context: Context) -> Iterator[None]:
        """A call from its start to its end. It has a span of its own, in the caller's trace."""

        def status(error: BaseException) -> str:
            return _status(error, context)

        attributes = {RPC_SYSTEM: "grpc", RPC_METHOD: method}
        with (
            self._counted(method, status),
            server_span(self._tracer, method, traceparent(context), attributes, status),
        ):
            yield

    @contextmanager
    def session(self, method: str, context: Context) -> Iterator[None]:
        """A stream of commands. Each command has a span, in the trace that its message names; the
        stream has none."""
        with self._counted(method, lambda error: _status(error, context)):
            yield

    def _know(self, method: str) -> None:
        """A rate misses the first count of a series that did not exist before it."""
        for status in ("OK", *get_args(Status)):
            self._finished.labels(method, status)

    @contextmanager
    def _counted(self, method: str, status: Callable[[BaseException], str]) -> Iterator[None]:
        self._known(method)
        self._running.labels(method).inc()
        ended = "OK"
        try:
            yield
        except BaseException as error:
            ended = status(error)
            raise
        finally:
            self._running.labels(method).dec()
            self._finished.labels(method, ended).inc()


DEADLINE_SLACK_SECONDS = 0.25
"""A client's deadline runs from when it sends a call, the server's from when that arrives."""


def _status(error: BaseException, context: Context) -> str:
    """gRPC cancels a call whose deadline is over as it cancels one whose client is gone."""
    left = context.time_remaining()
    status, near = status_of(error), left is not None and left <= DEADLINE_SLACK_SECONDS
    return "DEADLINE_EXCEEDED" if status == "CANCELLED" and near else status
