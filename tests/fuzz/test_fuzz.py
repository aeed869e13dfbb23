"""Whatever is sent to the three servers gets a reply or a clear status, and they are as before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fuzz.runner import fuzz, open_sessions
from tests.services import RunningServices, model_load, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

WARM_UP = 400
GROWTH_BYTES = 64 * 1024 * 1024
"""What may be left of caches that are filled once, and of a heap in pieces."""
REQUEST = pb.GenerateRequest(
    text="The quick brown fox",
    max_new_tokens=20,
    speculation=pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE),
)


@pytest.fixture(scope="module")
def services(llama: Path, gpt2: Path) -> Iterator[RunningServices]:
    settings = {"prefix_cache_mb": "16"}
    with running_services(llama, gpt2, model_settings=settings) as running:
        yield running


@pytest.mark.parametrize("requests", [800, pytest.param(10_000, marks=pytest.mark.full)])
def test_each_request_gets_a_reply_or_a_clear_status(
    services: RunningServices, requests: int
) -> None:
    before = services.generate(REQUEST)
    fuzz(services, WARM_UP, seed=1)
    memory = _resident(services)
    endings = fuzz(services, requests, seed=2)
    print(dict(endings.statuses))
    assert not endings.wrong
    assert endings.statuses["OK"] > requests / 10
    assert endings.statuses["INVALID_ARGUMENT"] > requests / 10
    _until_idle(services)
    after = _resident(services)
    for name, size in memory.items():
        assert after[name] < size + GROWTH_BYTES, name
    again = services.generate(REQUEST)
    assert again.ids == before.ids
    assert again.finished.speculation.candidates_accepted > 0


def _resident(services: RunningServices) -> dict[str, int]:
    return {
        name: psutil.Process(child.process.pid).memory_info().rss
        for name, child in services.children.items()
    }


def _until_idle(services: RunningServices) -> None:
    deadline = time.monotonic() + 10
    while open_sessions(services) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert open_sessions(services) == 0
    for address in (services.draft, services.verify):
        load = model_load(address)
        assert load.pending_steps == 0
        assert load.kept_prefix_bytes <= 16 * 1024 * 1024
