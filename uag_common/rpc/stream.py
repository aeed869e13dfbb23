"""The client's end of a session stream: one command, one answer, each with its deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Generic, TypeVar, cast

import grpc

from uag_common.addresses import split
from uag_common.errors import PeerUnavailableError, UagError
from uag_common.rpc.errors import from_status
from uag_common.telemetry.attributes import (
    REQUEST_MODEL,
    RPC_METHOD,
    RPC_SYSTEM,
    SERVER_ADDRESS,
    SERVER_PORT,
)
from uag_common.telemetry.spans import (
    Attributes,
    client_span,
    current_traceparent,
    is_recording,
)

Command = TypeVar("Command")
Answer = TypeVar("Answer")
Result = TypeVar("Result")

_WRITE_FAILED = "Internal error from Core"


class CommandSpans:
    """The spans of a session's commands at their client. `method` is the stream's full name, and
    `address` ("host:port") its server's. Made where the span of the request is current."""

    def __init__(self, method: str, address: str, model_id: str) -> None:
        host, port = split(address)
        self._attributes: Attributes = {
            RPC_SYSTEM: "grpc",
            RPC_METHOD: method,
            SERVER_ADDRESS: host,
            SERVER_PORT: port,
            REQUEST_MODEL: model_id,
        }

        # A request that is not recorded must not pay for its trace in each command.
        self._quiet = None if is_recording() else nullcontext(current_traceparent())

    def command(self, name: str) -> AbstractContextManager[str]:
        """Around a command; yields the trace context that its message carries."""
        return self._quiet or self._spanned(name)

    @contextmanager
    def _spanned(self, name: str) -> Iterator[str]:
        with client_span(name, self._attributes):
            yield current_traceparent()


class SessionStream(Generic[Command, Answer]):
    """Wraps a bidirectional call. After an error the session is over: open another."""

    def __init__(self, peer: str, call: grpc.aio.StreamStreamCall[Command, Answer]) -> None:
        self._peer = peer
        self._call = call
        self._writing = asyncio.Lock()
        self._end: UagError = PeerUnavailableError(f"{peer} ended the session")
        self._given_up: UagError | None = None
        call.add_done_callback(self._note_end)

    async def exchange(self, command: Command, timeout_seconds: float) -> tuple[Answer, float]:
        """Sends a command and waits for its answer: the answer, and the seconds it took. Raises
        the typed error of the peer's status, PeerUnavailableError if the peer ends the stream or
        does not answer in time."""
        began = time.perf_counter()

        async def both() -> object:
            await self._call.write(command)
            return await self._call.read()

        answer = await self._answered(both(), timeout_seconds)
        return answer, time.perf_counter() - began

    async def send(self, command: Command, timeout_seconds: float) -> None:
        """Sends a command, and does not wait for its answers: `receive` gives them, in the order of
        the commands. Raises as `exchange` does."""
        # A call that is told to write while it writes breaks.
        async with self._writing:
            await self._within(self._call.write(command), timeout_seconds)

    async def receive(self, timeout_seconds: float) -> Answer:
        """The next answer. Raises as `exchange` does."""
        return await self._answered(self._call.read(), timeout_seconds)

    async def _answered(self, reading: Awaitable[object], timeout_seconds: float) -> Answer:
        answer = await self._within(reading, timeout_seconds)
        if answer is grpc.aio.EOF:  # type: ignore[attr-defined]
            raise await self._ending()
        return cast(Answer, answer)

    async def _within(self, doing: Awaitable[Result], timeout_seconds: float) -> Result:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await doing
        except TimeoutError:
            self._given_up = PeerUnavailableError(
                f"{self._peer} did not answer within {timeout_seconds:g} s"
            )
            self._call.cancel()
            raise self._given_up from None
        except asyncio.CancelledError:
            # Of this task, or by grpc.aio of a call that an earlier command has given up.
            if self._given_up is None or _is_cancelled():
                raise
            raise self._given_up from None
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise await self._ending() from error

    async def _ending(self) -> UagError:
        """Why the stream is over, once it is."""
        await self._call.code()
        return self._given_up or self._end

    def _note_end(self, call: grpc.aio.StreamStreamCall[Command, Answer]) -> None:
        """Keeps the status that was known first. When a stream ends while a command is being
        written, grpc.aio puts one of its own in the place of the peer's; one that came first tells
        only that the stream ended."""
        code, message = _now(call.code()), _now(call.details())
        if code is not grpc.StatusCode.OK and message != _WRITE_FAILED:
            self._end = from_status(self._peer, code, message, _now(call.trailing_metadata()))

    def close(self) -> None:
        """Ends the session at the peer; harmless if it is over already."""
        self._call.cancel()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _now(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine gives that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return cast(Result, done.value)
    coroutine.close()
    raise RuntimeError("a call that is done has its status")
