"""Hundreds of requests that finish, are cancelled, or run out of time: nothing of them stays."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from tests.services import RunningServices, model_load, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

TEXTS = ("The quick brown fox", "def add(", "It rained for 40 days; on", "Wörter mit Umlauten")
AT_ONCE = 16
GROWTH = 1.05
"""Of resident memory, at most."""


@pytest.fixture(scope="module")
def services(llama: Path, gpt2: Path) -> Iterator[RunningServices]:
    """With memory for some of the contexts that are asked for at once, and none for kept ones."""
    settings = {"kv_cache": "1MB", "prefix_cache_mb": "0"}
    with running_services(llama, gpt2, model_settings=settings) as running:
        yield running


class Crowd:
    """Requests of all kinds, so many at a time."""

    def __init__(self, channel: grpc.aio.Channel, seed: int) -> None:
        self._stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        self._dice = random.Random(seed)
        self._turn = asyncio.Semaphore(AT_ONCE)
        self.ends: list[grpc.StatusCode] = []

    async def go(self, requests: int) -> None:
        await asyncio.gather(*(self._one() for _ in range(requests)))

    def _request(self) -> pb.GenerateRequest:
        dice = self._dice
        request = pb.GenerateRequest(
            text=dice.choice(TEXTS) * dice.randint(1, 4), max_new_tokens=dice.randint(1, 40)
        )
        request.speculation.draft_tokens = dice.choice([0, 1, 5])
        if dice.random() < 0.3:
            request.sampling.temperature = 1.0
            request.n = dice.randint(1, 3)
        return request

    async def _one(self) -> None:
        async with self._turn:
            way = self._dice.choice(["finish", "finish", "cancel", "time out"])
            timeout = self._dice.random() * 0.2 if way == "time out" else 60
            call = self._stub.Generate(self._request(), timeout=timeout)
            if way == "cancel":
                await asyncio.sleep(self._dice.random() * 0.2)
                call.cancel()
            else:
                await self._read(call)
            self.ends.append(await call.code())

    @staticmethod
    async def _read(
        call: grpc.aio.UnaryStreamCall[pb.GenerateRequest, pb.GenerateResponse],
    ) -> None:
        try:
            async for _ in call:
                pass
        except grpc.aio.AioRpcError:
            # Its time was over.
            pass


def resident(services: RunningServices) -> dict[str, int]:
    """Bytes of each process."""
    return {
        name: psutil.Process(child.process.pid).memory_info().rss
        for name, child in services.children.items()
    }


async def crowd(services: RunningServices, requests: int, seed: int) -> list[grpc.StatusCode]:
    async with grpc.aio.insecure_channel(services.orchestrator) as channel:
        made = Crowd(channel, seed)
        await made.go(requests)
        return made.ends


def assert_all_is_free(services: RunningServices) -> None:
    for address in (services.draft, services.verify):
        deadline = time.monotonic() + 10
        while (load := model_load(address)).open_sessions or load.pending_steps:
            assert time.monotonic() < deadline, load
            time.sleep(0.05)
        assert (load.kv_blocks_used, load.waiting_sessions, load.kept_prefixes) == (0, 0, 0)
        assert load.kv_blocks > 0


def test_nothing_of_500_requests_stays(services: RunningServices) -> None:
    # Until there is a program for passes of most lengths, of which so many are kept.
    asyncio.run(crowd(services, 500, seed=0))
    assert_all_is_free(services)
    before = resident(services)
    ends = asyncio.run(crowd(services, 500, seed=1))
    assert_all_is_free(services)
    gc.collect()
    assert {end.name for end in ends} == {"OK", "CANCELLED", "DEADLINE_EXCEEDED"}
    assert ends.count(grpc.StatusCode.OK) > 200
    for name, size in resident(services).items():
        assert size < GROWTH * before[name], name
