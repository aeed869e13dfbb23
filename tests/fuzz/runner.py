"""Sends random requests to running services and counts how they end."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from tests.fuzz.commands import draft_commands, verify_commands
from tests.fuzz.requests import mutated, random_request
from tests.services import RunningServices, model_load
from uag.draft.v1 import draft_pb2_grpc
from uag.model.v1 import model_pb2, model_pb2_grpc
from uag.verify.v1 import verify_pb2_grpc

GENERATE = "/uag.orchestrator.v1.Orchestrator/Generate"
AT_ONCE = 12
TIMEOUT_SECONDS = 60.0
"""A request that takes longer hangs: none of them has much to do."""

CLEAR = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.CANCELLED,
}
CLEAR_INSIDE = CLEAR | {grpc.StatusCode.FAILED_PRECONDITION}
"""Between the services: a context that is not the one that was meant."""


@dataclass(slots=True)
class Endings:
    """How many requests ended by which status, and those that did not end as they should."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, code: grpc.StatusCode, details: str, clear: set[grpc.StatusCode]) -> None:
        self.statuses[code.name] += 1
        # What a request asks for that is to fail with its draft.
        asked = code is grpc.StatusCode.UNAVAILABLE and details.startswith("drafting failed")
        silent = code is not grpc.StatusCode.OK and not details
        if silent or not (asked or code in clear):
            self.wrong.append(f"{code.name}: {details[:300]}")


def fuzz(services: RunningServices, requests: int, seed: int) -> Endings:
    """Three quarters of the requests go to the orchestrator, the rest to the inner services."""
    return asyncio.run(_fuzz(services, requests, seed))


async def _fuzz(services: RunningServices, requests: int, seed: int) -> Endings:
    endings = Endings()
    async with (
        grpc.aio.insecure_channel(services.orchestrator) as orchestrator,
        grpc.aio.insecure_channel(services.draft) as draft,
        grpc.aio.insecure_channel(services.verify) as verify,
    ):
        draft_sha, verify_sha = await _sha256(draft), await _sha256(verify)

        async def one(number: int) -> None:
            own = random.Random(f"{seed} {number}")
            match number % 8:
                case 6:
                    session = draft_pb2_grpc.DraftServiceStub(draft).Session
                    await _session(session, draft_commands(own, draft_sha), endings)
                case 7:
                    session = verify_pb2_grpc.VerifyServiceStub(verify).Session
                    await _session(session, verify_commands(own, verify_sha), endings)
                case _:
                    await _generate(orchestrator, own, endings)

        await _at_once(one, requests)
    return endings


async def _at_once(one: Callable[[int], Awaitable[None]], count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _sha256(channel: grpc.aio.Channel) -> str:
    stub = model_pb2_grpc.ModelServiceStub(channel)
    model = (await stub.DescribeModel(model_pb2.DescribeModelRequest(), timeout=10)).model
    return str(model.tokenizer_sha256)


async def _generate(channel: grpc.aio.Channel, dice: random.Random, endings: Endings) -> None:
    data = random_request(dice).SerializeToString()
    if dice.random() < 0.25:
        data = mutated(dice, data)
    method = channel.unary_stream(GENERATE, request_serializer=bytes, response_deserializer=bytes)
    call = method(data, timeout=TIMEOUT_SECONDS)
    leave_after = dice.randrange(4) if dice.random() < 0.15 else None
    received = 0
    try:
        async for _ in call:
            received += 1
            if received == leave_after:
                call.cancel()
    except (grpc.aio.AioRpcError, asyncio.CancelledError):
        if asyncio.current_task().cancelling():  # type: ignore[union-attr]
            raise
    endings.add(await call.code(), await call.details() or "", CLEAR)


async def _session(session: Any, commands: Sequence[object], endings: Endings) -> None:
    call = session(timeout=TIMEOUT_SECONDS)
    try:
        for command in commands:
            await call.write(command)
            if await call.read() is grpc.aio.EOF:  # type: ignore[attr-defined]
                break
        await call.done_writing()
        await call.read()
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        pass
    endings.add(await call.code(), await call.details() or "", CLEAR_INSIDE)


def open_sessions(services: RunningServices) -> int:
    """Of both inner services, by their own count."""
    return sum(model_load(address).open_sessions for address in (services.draft, services.verify))
