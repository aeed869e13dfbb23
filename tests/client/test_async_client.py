"""The asynchronous client on a real socket: what differs from its twin, and that the rest does not.

The scripted orchestrator runs in threads of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import grpc
import pytest
from google.rpc import error_details_pb2

from orchestrator.client import (
    AsyncAnswerStream,
    AsyncClient,
    CallCancelledError,
    ClosedError,
    ConnectError,
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    NotYetError,
    Tokenization,
    UnavailableError,
    chat,
)
from tests.scripted_orchestrator import (
    ANSWER,
    FINISHED,
    STARTED,
    ScriptedOrchestrator,
    delta,
    status_details,
)
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.addresses import with_real_port

TEXT = "Once upon a tïme"
SOON_SECONDS = 10.0
LONG = (STARTED, *(delta("word ") for _ in range(1000)))


async def test_deltas_in_order(orchestrator: ScriptedOrchestrator) -> None:
    async with AsyncClient(orchestrator.address) as client:
        stream = client.generate("hi", max_new_tokens=5)
        with pytest.raises(NotYetError):
            assert stream.started
        assert [item.text async for item in stream] == ["Once ", "upon a ", "tïme"]
    assert stream.started.draft_model_id == "draft"
    assert (stream.text(), (await stream.answer()).text) == (TEXT, TEXT)
    assert stream.finished().usage.completion_tokens == 5
    assert orchestrator.requests[0].max_new_tokens == 5


async def test_the_other_calls(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.unary = pb.GenerateUnaryResponse(
        started=STARTED.started, choices=[pb.Choice(text="a", finished=FINISHED.finished)]
    )
    async with AsyncClient(orchestrator.address) as client:
        assert (await client.complete(chat("hi"))).text == "a"
        assert (await client.describe()).draft is None
        assert await client.tokenize("hü") == Tokenization((104, 252), ("h", "ü"))
        assert await client.detokenize([104, 252]) == "hü"


@pytest.mark.parametrize("call", ["generate", "complete", "describe", "tokenize", "detokenize"])
async def test_every_call_has_typed_errors(orchestrator: ScriptedOrchestrator, call: str) -> None:
    orchestrator.script = ()
    code = grpc.StatusCode.INVALID_ARGUMENT
    violation = error_details_pb2.BadRequest.FieldViolation(field="n", description="is 17")
    bad = error_details_pb2.BadRequest(field_violations=[violation])
    orchestrator.error, orchestrator.details = (code, "n: is 17"), status_details(code, bad)
    async with AsyncClient(orchestrator.address) as client:
        with pytest.raises(InvalidRequestError) as refused:
            await _calls(client)[call]()
    assert (refused.value.field, refused.value.problem) == ("n", "is 17")


def _calls(client: AsyncClient) -> dict[str, Callable[[], Awaitable[object]]]:
    return {
        "generate": lambda: client.generate("hi").answer(),
        "complete": lambda: client.complete("hi"),
        "describe": client.describe,
        "tokenize": lambda: client.tokenize("hi"),
        "detokenize": lambda: client.detokenize([1]),
    }


async def test_where_nothing_answers_the_address_is_named() -> None:
    address = with_real_port("127.0.0.1:0")
    async with AsyncClient(address) as client:
        for call in _calls(client).values():
            with pytest.raises(ConnectError, match=f"^cannot connect to {address}: Connection"):
                await call()


async def test_a_stream_that_ends_too_early_is_an_error(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = ANSWER[:3]
    async with AsyncClient(orchestrator.address) as client:
        with pytest.raises(InternalError, match="the middle"):
            await client.generate("hi").answer()


async def test_an_error_in_the_middle_keeps_what_came(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = ANSWER[:2]
    orchestrator.error = (grpc.StatusCode.UNAVAILABLE, "verify service: gone")
    async with AsyncClient(orchestrator.address) as client:
        stream = client.generate("hi")
        with pytest.raises(UnavailableError, match="verify service: gone"):
            await stream.answer()
    assert stream.text() == "Once "
    assert len(orchestrator.requests) == 1


@pytest.mark.parametrize("call", ["generate", "complete"])
async def test_a_call_that_the_server_cancels_is_no_cancelled_task(
    orchestrator: ScriptedOrchestrator, call: str
) -> None:
    orchestrator.script = ANSWER[:2]
    orchestrator.error = (grpc.StatusCode.CANCELLED, "no more")
    async with AsyncClient(orchestrator.address) as client:
        with pytest.raises(UnavailableError, match="ended the call"):
            await _calls(client)[call]()


async def test_a_deadline_ends_the_call(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.pause_seconds = 0.5
    async with AsyncClient(orchestrator.address, timeout=0.2) as client:
        for call in ("generate", "complete"):
            with pytest.raises(DeadlineExceededError, match=r"no end after 0\.2 s"):
                await _calls(client)[call]()


async def test_a_stream_that_is_closed_cancels_its_call(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script, orchestrator.pause_seconds = LONG, 0.02
    async with AsyncClient(orchestrator.address) as client:
        async with client.generate("hi") as stream:
            await anext(stream)
        assert await asyncio.to_thread(orchestrator.ended.wait, SOON_SECONDS)
        with pytest.raises(CallCancelledError):
            await _read_all(stream)


async def test_another_task_may_close_a_stream(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script, orchestrator.pause_seconds = LONG, 0.05
    async with AsyncClient(orchestrator.address) as client:
        stream = client.generate("hi")
        reading = asyncio.ensure_future(_read_all(stream))
        await asyncio.sleep(0.3)
        await stream.close()
        with pytest.raises(CallCancelledError):
            await reading
    assert stream.text().startswith("word ")


async def test_a_cancelled_task_cancels_its_call(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script, orchestrator.pause_seconds = LONG, 0.02
    async with AsyncClient(orchestrator.address) as client:
        reading = asyncio.ensure_future(_read_all(client.generate("hi")))
        await asyncio.sleep(0.3)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await asyncio.to_thread(orchestrator.ended.wait, SOON_SECONDS)


async def test_a_timeout_of_asyncio_is_one(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script, orchestrator.pause_seconds = LONG, 0.02
    async with AsyncClient(orchestrator.address) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await _read_all(client.generate("hi"))
        assert await asyncio.to_thread(orchestrator.ended.wait, SOON_SECONDS)


async def test_many_at_once(orchestrator: ScriptedOrchestrator) -> None:
    async with AsyncClient(orchestrator.address) as client:
        answers = await asyncio.gather(*(client.generate("hi").answer() for _ in range(20)))
    assert {answer.text for answer in answers} == {TEXT}


def test_it_may_be_made_before_there_is_a_loop(orchestrator: ScriptedOrchestrator) -> None:
    client = AsyncClient(orchestrator.address)

    async def ask() -> str:
        async with client:
            return (await client.generate("hi").answer()).text

    assert asyncio.run(ask()) == TEXT


async def _read_all(stream: AsyncAnswerStream) -> None:
    async for _ in stream:
        pass


async def test_a_closed_client_says_so(orchestrator: ScriptedOrchestrator) -> None:
    never_used, used = AsyncClient(orchestrator.address), AsyncClient(orchestrator.address)
    await used.generate("hi").answer()
    for client in (never_used, used):
        await client.close()
        await client.close()
        with pytest.raises(ClosedError, match="the client is closed"):
            client.generate("hi")
        with pytest.raises(ClosedError, match="the client is closed"):
            await client.describe()


def test_a_client_belongs_to_one_loop(orchestrator: ScriptedOrchestrator) -> None:
    client = AsyncClient(orchestrator.address)

    async def ask() -> None:
        await client.generate("hi").answer()

    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(ask())
        with pytest.raises(RuntimeError, match="the event loop of its first call"):
            second.run(ask())
        first.run(ask())
        first.run(client.close())
