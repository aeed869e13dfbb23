"""What a model service counts: its sessions, its cache, and the steps of its model.

Knows no model. Times are in seconds, tokens are those of the service's own model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from uag_common.model import ModelDescription
from uag_common.telemetry.attributes import BATCH_SIZE, QUEUE_SECONDS, STEP
from uag_common.telemetry.metrics import STEP_BUCKETS
from uag_common.telemetry.names import FORWARD, QUEUE
from uag_common.telemetry.spans import past_span

SHOWN_WAIT_SECONDS = 0.001
"""A shorter wait between two steps is threads taking turns, and gets no span of its own."""


class ModelMetrics:
    """Of one model service."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        queue_wait = Histogram(
            "uag_queue_wait_seconds",
            "Seconds that a step waited for the model to be free.",
            ("command",),
            registry=registry,
            buckets=STEP_BUCKETS,
        )
        forward = Histogram(
            "uag_forward_seconds",
            "Seconds of a step of the model: a prefill, a verification, one drafted token.",
            ("command",),
            registry=registry,
            buckets=STEP_BUCKETS,
        )
        # Looked up for each drafted token.
        self._wait_of, self._forward_of = cache(queue_wait.labels), cache(forward.labels)
        self._batch_size = Histogram(
            "uag_batch_size",
            "Sessions that shared a forward pass.",
            registry=registry,
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
        )
        self._held = Gauge(
            "uag_kv_cache_tokens", "Tokens of the open sessions' contexts.", registry=registry
        )
        self._refused = Counter(
            "uag_sessions_refused", "Sessions refused for want of room.", registry=registry
        )
        self._queried = Counter(
            "uag_prefix_cache_queried_tokens",
            "Tokens of contexts that sessions were opened with.",
            registry=registry,
        )
        self._hit = Counter(
            "uag_prefix_cache_hit_tokens",
            "Tokens of contexts that were found in another session's cache.",
            registry=registry,
        )

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Shows what `value` tells at each scrape; it is asked from another thread."""
        Gauge(name, meaning, registry=self._registry).set_function(value)

    def describe(self, model: ModelDescription) -> None:
        """Tells which model it is."""
        told = {
            "model_id": model.model_id,
            "revision": model.revision,
            "dtype": model.dtype,
            "device": model.device,
        }
        Info("uag_model", "The model that the service holds.", registry=self._registry).info(told)

    @contextmanager
    def session(self) -> Iterator[Callable[[int], None]]:
        """A session from its start to its end; yields how it tells the length of its context."""
        held = 0

        def hold(tokens: int) -> None:
            nonlocal held
            self._held.inc(tokens - held)
            held = tokens

        try:
            yield hold
        finally:
            hold(0)

    def refused(self) -> None:
        self._refused.inc()

    def opened(self, context_tokens: int, cached_tokens: int) -> None:
        self._queried.inc(context_tokens)
        self._hit.inc(cached_tokens)

    def stepped(self, command: str, queued: float, began: float, ended: float) -> None:
        """A step that ran; times are those of `time.perf_counter`."""
        wait = began - queued
        self._wait_of(command).observe(wait)
        self._forward_of(command).observe(ended - began)
        self._batch_size.observe(1)
        if wait >= SHOWN_WAIT_SECONDS:
            past_span(QUEUE, queued, began)
        past_span(FORWARD, began, ended, {STEP: command, QUEUE_SECONDS: wait, BATCH_SIZE: 1})

    def dropped(self, command: str, queued: float) -> None:
        """A step whose caller went away before it began."""
        now = time.perf_counter()
        self._wait_of(command).observe(now - queued)
        past_span(QUEUE, queued, now)
