"""The times of an answer as its client sees them."""

from __future__ import annotations

import time

import pytest

from orchestrator.bench.stopwatch import watch
from orchestrator.client import Client
from tests.scripted_orchestrator import ScriptedOrchestrator

PAUSE = 0.05


def test_times_are_those_of_the_deltas() -> None:
    """The script: the start, three deltas, the end, each after a pause."""
    with ScriptedOrchestrator(pause_seconds=PAUSE) as scripted, Client(scripted.address) as client:
        asked = time.perf_counter()
        reply = watch(client.generate("hi"), asked)
        whole = time.perf_counter() - asked
    assert reply.ids == (7, 7, 7)
    assert (reply.prompt_tokens, reply.first_tokens, reply.rounds) == (3, 1, 2)
    assert reply.first_seconds >= 2 * PAUSE
    assert reply.last_seconds - reply.first_seconds >= 2 * PAUSE - 0.01
    assert reply.last_seconds <= whole - PAUSE + 0.01
    assert reply.seconds_per_token == pytest.approx((reply.last_seconds - reply.first_seconds) / 2)
    assert reply.speculation is not None
    assert reply.speculation.candidates_accepted == 2
    assert reply.degraded is None
