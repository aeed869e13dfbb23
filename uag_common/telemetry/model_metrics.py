"""What a model service counts: its sessions, its cache, and the steps of its model.

Knows no model. Times are in seconds, tokens are those of the service's own model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from uag_common.batching.timing import Pass
from uag_common.model import ModelDescription
from uag_common.telemetry.attributes import BATCH_SIZE, BATCH_TOKENS, QUEUE_SECONDS, STEP
from uag_common.telemetry.metrics import STEP_BUCKETS
from uag_common.telemetry.names import FORWARD, QUEUE
from uag_common.telemetry.spans import Attributes, past_span

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
            "Seconds of a pass for a step in it: of a prefill, a verification, or a drafted token.",
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
        self._batch_tokens = Histogram(
            "uag_batch_tokens",
            "Tokens of all sessions in a forward pass.",
            registry=registry,
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
        )
        self._pass = Histogram(
            "uag_pass_seconds",
            "Seconds of a forward pass, and of choosing tokens after it.",
            registry=registry,
            buckets=STEP_BUCKETS,
        )
        self._evictions = Counter(
            "uag_kv_evictions",
            "Caches that running sessions gave up for older ones, and compute anew.",
            registry=registry,
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

    def stepped(self, command: str, passes: Sequence[Pass]) -> None:
        """A step that had these passes."""
        for each in passes:
            wait = each.began - each.queued
            self._wait_of(command).observe(wait)
            self._forward_of(command).observe(each.ended - each.began)
            if wait >= SHOWN_WAIT_SECONDS:
                past_span(QUEUE, each.queued, each.began)
            told: Attributes = {
                STEP: command,
                QUEUE_SECONDS: wait,
                BATCH_SIZE: each.sessions,
                BATCH_TOKENS: each.tokens,
            }
            past_span(FORWARD, each.began, each.ended, told)

    def passed(self, sessions: int, tokens: int, seconds: float) -> None:
        """A forward pass of so many sessions, with so many tokens of all of them."""
        self._batch_size.observe(sessions)
        self._batch_tokens.observe(tokens)
        self._pass.observe(seconds)

    def evicted(self) -> None:
        """A session had to give up its cache to an older one."""
        self._evictions.inc()

    def dropped(self, command: str, queued: float) -> None:
        """A step whose caller went away before it began."""
        now = time.perf_counter()
        self._wait_of(command).observe(now - queued)
        past_span(QUEUE, queued, now)
