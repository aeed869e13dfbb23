"""What health tells over a real socket, in each state of a server, and to each who watches."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.fakes import FakeModel
from tests.rpc.http2 import DATA, END_STREAM, SETTINGS, Connection, frame, message
from tests.rpc.trivial_service import SERVICE, TICK, number, serving, trivial_server
from tests.services import free_address
from uag_common.model import Model, Step
from uag_common.model_settings import ModelServiceSettings
from uag_common.ranks.leader import Ranks
from uag_common.rpc.health import LIVE, READY
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.metadata import Context
from uag_common.rpc.model_service import MODEL_SERVICE, run_model_service
from uag_common.rpc.server import LAST_WORDS_SECONDS

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
READY_NAMES = (READY, "", SERVICE)
PEER = "uag.test.v1.Peer"
STALLED_SECONDS = 0.4


@dataclass(frozen=True, kw_only=True)
class Settings(ModelServiceSettings):
    PREFIX: ClassVar[str] = "UAG_TEST_"


async def check(channel: Any, name: str) -> bool:
    request = health_pb2.HealthCheckRequest(service=name)
    answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=5)
    return bool(answer.status == SERVING)


async def checks(channel: Any, *names: str) -> list[bool]:
    return [await check(channel, name) for name in names]


async def test_all_names_are_listed() -> None:
    async with serving(trivial_server()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.List(health_pb2.HealthListRequest(), timeout=5)
    told = {name: status.status == SERVING for name, status in answer.statuses.items()}
    assert told == dict.fromkeys((LIVE, *READY_NAMES), True)


def watch(channel: Any, name: str) -> Any:
    request = health_pb2.HealthCheckRequest(service=name)
    return health_pb2_grpc.HealthStub(channel).Watch(request, timeout=30)


async def ready(channel: Any) -> Any:
    """A watch of READY that was told that it is."""
    call = watch(channel, READY)
    while await following(call) != SERVING:
        pass
    return call


async def following(call: Any) -> int:
    """What the watch is told next."""
    async with asyncio.timeout(10):
        return int((await call.read()).status)


async def test_live_is_told_from_the_start_and_ready_when_it_is() -> None:
    server = trivial_server()
    async with serving(server) as channel:
        await server.set_serving(False)
        assert await checks(channel, LIVE, *READY_NAMES) == [True, False, False, False]
        await server.set_serving(True)
        assert await checks(channel, LIVE, *READY_NAMES) == [True] * 4
        server.set_live(False)
        assert await checks(channel, LIVE, *READY_NAMES) == [False] * 4
        server.set_live(True)
        assert await checks(channel, LIVE, *READY_NAMES) == [True] * 4


async def test_what_a_server_needs_has_a_name_of_its_own() -> None:
    server = trivial_server()
    async with serving(server) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await check(channel, PEER)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        following_peer = watch(channel, PEER)
        assert await following(following_peer) == UNKNOWN
        for there, status in ((True, SERVING), (False, NOT_SERVING), (True, SERVING)):
            await server.set_health(PEER, there)
            assert await following(following_peer) == status
            assert await checks(channel, PEER, READY) == [there, True]


async def test_a_server_that_drains_lives_and_is_not_ready_whatever_is_set() -> None:
    async def stream(request: Struct, context: Context) -> AsyncIterator[Struct]:  # noqa: ARG001
        yield request
        await server.ending.wait()

    server = trivial_server(stream=stream)
    async with serving(server) as channel:
        await server.set_health(PEER, True)
        call = channel.unary_stream(TICK)(number(1).SerializeToString())
        await call.read()
        whole, live = watch(channel, READY), watch(channel, LIVE)
        assert [await following(whole), await following(live)] == [SERVING, SERVING]
        draining = asyncio.ensure_future(server.stop(2 * LAST_WORDS_SECONDS))
        assert await following(whole) == NOT_SERVING
        await server.set_serving(True)
        await server.set_health(PEER, True)
        assert await checks(channel, LIVE, *READY_NAMES, PEER) == [True, *[False] * 4]
        await draining
        for ended in (whole, live):
            # Nothing more was told, and nothing was cut off.
            assert await ended.read() is grpc.aio.EOF  # type: ignore[attr-defined]
            assert await ended.code() is grpc.StatusCode.OK


async def test_watchers_are_told_each_change_and_nothing_twice() -> None:
    server = trivial_server()
    async with serving(server) as channel:
        watchers = [watch(channel, name) for name in (READY, LIVE, SERVICE, READY)]
        for watcher in watchers:
            assert await following(watcher) == SERVING
        for serves in (False, False, True, True, False):
            await server.set_serving(serves)
            await asyncio.sleep(0.02)
        for watcher in (watchers[0], *watchers[2:]):
            assert [await following(watcher) for _ in range(3)] == [
                NOT_SERVING,
                SERVING,
                NOT_SERVING,
            ]
        server.set_live(False)
        assert await following(watchers[1]) == NOT_SERVING
        await server.stop(0)
        for watcher in watchers:
            assert await watcher.read() is grpc.aio.EOF  # type: ignore[attr-defined]


async def test_a_watcher_who_does_not_read_holds_nobody_up() -> None:
    """It lets the server send nothing: a first window of no bytes."""
    server = trivial_server()
    await server.set_serving(True)
    port = await server.start("127.0.0.1:0", "listen")
    connection = await asyncio.to_thread(Connection, port)
    no_window = frame(SETTINGS, 0, 0, (4).to_bytes(2, "big") + bytes(4))
    connection.send(no_window)
    connection.start("/grpc.health.v1.Health/Watch")
    connection.send(frame(DATA, END_STREAM, 1, message(b"")))
    await asyncio.sleep(0.2)
    with connection:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            watcher = watch(channel, "")
            assert await following(watcher) == SERVING
            await server.set_serving(False)
            assert await following(watcher) == NOT_SERVING
            async with asyncio.timeout(LAST_WORDS_SECONDS + 2):
                await server.stop(10)


@dataclass(frozen=True, slots=True)
class ModelService:
    """One that runs; `load` lets its model be loaded."""

    channel: Any
    slot: ModelSlot
    load: Callable[[], None]
    serving: asyncio.Future[None]

    async def stop(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            await self.serving

    async def _run(self, function: Callable[[], object]) -> None:
        def step() -> Step[None]:
            function()
            yield from ()

        await self.slot.loaded.batcher.session().run(step, "open")

    @asynccontextmanager
    async def busy(self, step: Callable[[threading.Event], object]) -> AsyncIterator[None]:
        """The model runs a step until the end of the block."""
        release = threading.Event()
        running = asyncio.ensure_future(self._run(lambda: step(release)))
        try:
            yield
        finally:
            release.set()
            await running


@asynccontextmanager
async def model_service() -> AsyncIterator[ModelService]:
    """A model service in this process, from its start on."""
    slots: list[ModelSlot] = []
    may_load, address = threading.Event(), free_address()

    def load_model() -> Model:
        may_load.wait(30)
        return FakeModel()

    settings = Settings(
        listen=address, model="fake", stalled_seconds=STALLED_SECONDS, drain_seconds=1
    )
    running = asyncio.ensure_future(
        run_model_service(
            "draft",
            settings,
            SERVICE,
            lambda _, slot: slots.append(slot),
            load_model,
            Ranks(settings, "draft_service"),
        )
    )
    await asyncio.sleep(0)
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            yield ModelService(channel, slots[0], may_load.set, running)
    finally:
        may_load.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_while_it_loads_a_model_service_lives_however_long_it_takes() -> None:
    async with model_service() as service:
        whole = watch(service.channel, READY)
        assert await following(whole) == NOT_SERVING
        await asyncio.sleep(2 * STALLED_SECONDS)
        assert await checks(service.channel, LIVE, READY) == [True, False]
        service.load()
        assert await following(whole) == SERVING
        names = (LIVE, "", SERVICE, MODEL_SERVICE)
        assert await checks(service.channel, *names) == [True] * 4
        await service.stop()


async def test_a_step_that_takes_far_too_long_is_no_life_until_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "uag_common")
    async with model_service() as service:
        service.load()
        whole, live = await ready(service.channel), watch(service.channel, LIVE)
        assert await following(live) == SERVING
        caplog.clear()
        async with service.busy(lambda release: release.wait(30)):
            assert await following(live) == NOT_SERVING
            assert await following(whole) == NOT_SERVING
            await asyncio.sleep(STALLED_SECONDS)
        assert await following(live) == SERVING
        assert await following(whole) == SERVING
        await service.stop()
    levels = [record.levelname for record in caplog.records]
    assert levels == ["ERROR", "INFO"]
    assert "one step of the model has been running for " in caplog.text


def computing(release: threading.Event) -> None:
    """Takes all that Python gives to a thread."""
    while not release.is_set():
        pass


@pytest.mark.parametrize("step", [computing, threading.Event.wait])
async def test_health_answers_at_once_during_a_forward(
    step: Callable[[threading.Event], object],
) -> None:
    async with model_service() as service:
        service.load()
        await ready(service.channel)
        async with service.busy(step):
            for name in (LIVE, READY):
                began = time.monotonic()
                await check(service.channel, name)
                assert time.monotonic() - began < 1
        await service.stop()
