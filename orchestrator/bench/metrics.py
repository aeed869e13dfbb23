"""The metrics of requests, by the names that load generators give them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.bench.measurement import Reply
from orchestrator.bench.statistics import Summary


@dataclass(frozen=True, slots=True)
class Metric:
    """A summary and what it is of, by name."""

    name: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    unit: str
    value: Callable[[Reply], float | None]


_METRICS = (
    _Kind("time_per_output_token", "ms", lambda reply: _times(1000, reply.seconds_per_token)),
    _Kind("output_tokens_per_second", "tokens/s", lambda reply: _inverse(reply.seconds_per_token)),
    _Kind("time_to_first_token", "ms", lambda reply: 1000 * reply.first_seconds),
    _Kind("request_latency", "ms", lambda reply: 1000 * reply.last_seconds),
    _Kind("tokens_per_round", "tokens", lambda reply: reply.tokens_per_round),
    _Kind("output_sequence_length", "tokens", lambda reply: len(reply.ids)),
    _Kind("input_sequence_length", "tokens", lambda reply: reply.prompt_tokens),
)


def metrics(replies: Sequence[Reply]) -> list[Metric]:
    """Those that at least one request has."""
    found = []
    for kind in _METRICS:
        values = [value for reply in replies if (value := kind.value(reply)) is not None]
        if values:
            found.append(Metric(kind.name, Summary.of(values, kind.unit)))
    return found


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None
