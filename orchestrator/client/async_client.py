"""The client of programs with asyncio; a twin of `client`. Knows gRPC's asynchronous API."""

# ruff: noqa: ASYNC109 - a timeout here is the deadline that goes with the call

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Self, Unpack

import grpc

from orchestrator.client.answer import Answer, Delta
from orchestrator.client.connection import Connection, Tls
from orchestrator.client.description import Models, Tokenization
from orchestrator.client.errors import ClosedError
from orchestrator.client.options import Options
from orchestrator.client.prompt import Prompt
from orchestrator.client.request import encode_detokenize, encode_request, encode_tokenize
from orchestrator.client.response import (
    decode_answer,
    decode_event,
    decode_models,
    decode_tokenization,
)
from orchestrator.client.status import error_of
from orchestrator.client.transcript import Transcript
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc


class AsyncAnswerStream(Transcript, AsyncIterator[Delta]):
    """As AnswerStream, for `async for`. A task that is cancelled while it reads ends the call."""

    def __init__(self, call: Any, address: str, timeout: float | None) -> None:
        super().__init__()
        self._call = call
        self._address = address
        self._timeout = timeout

    async def __anext__(self) -> Delta:
        while (response := await self._read()) is not None:
            event = decode_event(response)
            self._add(event)
            if isinstance(event, Delta):
                return event
        self._whole()
        raise StopAsyncIteration

    async def _read(self) -> pb.GenerateResponse | None:
        async with _typed_errors(self._call, self._address, self._timeout):
            response: pb.GenerateResponse = await self._call.read()
            return None if response is grpc.aio.EOF else response  # type: ignore[attr-defined]

    async def answer(self) -> Answer:
        """All of it; reads on to the end."""
        async for _ in self:
            pass
        return self._whole()

    async def close(self) -> None:
        self._call.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncClient:
    """As Client, in one event loop: that of its first call."""

    def __init__(
        self,
        address: str,
        *,
        timeout: float | None = 600.0,
        tls: Tls | bool = False,
        api_key: str | None = None,
        allow_insecure_key: bool = False,
    ) -> None:
        self._connection = Connection(address, tls, api_key, allow_insecure_key, timeout)

        self._channel: grpc.aio.Channel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @cached_property
    def _open_stub(self) -> Any:
        # Not before there is a loop to use it in.
        self._channel = self._connection.open_async()
        self._loop = asyncio.get_running_loop()
        return orchestrator_pb2_grpc.OrchestratorStub(self._channel)

    @property
    def _stub(self) -> Any:
        if self._closed:
            raise ClosedError("the client is closed")
        stub = self._open_stub
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError("an AsyncClient belongs to the event loop of its first call")
        return stub

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels what is running and closes the connection."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close(None)

    def generate(
        self,
        prompt: Prompt,
        *,
        timeout: float | None = None,
        traceparent: str | None = None,
        **options: Unpack[Options],
    ) -> AsyncAnswerStream:
        """Answers as they are written. `timeout`: seconds for the whole answer; `traceparent`: the
        caller's trace, which the request becomes a part of."""
        seconds = self._connection.seconds(timeout)
        call = self._stub.Generate(
            encode_request(prompt, options),
            timeout=seconds,
            metadata=self._connection.metadata(traceparent),
        )
        return AsyncAnswerStream(call, self._connection.address, seconds)

    async def complete(
        self,
        prompt: Prompt,
        *,
        timeout: float | None = None,
        traceparent: str | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """As `generate`, but in one piece when all is written."""
        request = encode_request(prompt, options)
        method = self._stub.GenerateUnary
        return decode_answer(await self._call(method, request, timeout, traceparent))

    async def describe(self, *, timeout: float | None = None) -> Models:
        """Which models answer."""
        request = pb.DescribeModelRequest()
        return decode_models(await self._call(self._stub.DescribeModel, request, timeout))

    async def tokenize(self, prompt: Prompt, *, timeout: float | None = None) -> Tokenization:
        """The target's ids of a text or a conversation, exactly as `generate` has them."""
        request = encode_tokenize(prompt)
        return decode_tokenization(await self._call(self._stub.Tokenize, request, timeout))

    async def detokenize(self, ids: Iterable[int], *, timeout: float | None = None) -> str:
        """The text that an answer of these ids of the target is shown as."""
        request = encode_detokenize(ids)
        response: pb.DetokenizeResponse = await self._call(self._stub.Detokenize, request, timeout)
        return response.text

    async def _call(
        self, method: Any, request: Any, timeout: float | None, traceparent: str | None = None
    ) -> Any:
        seconds = self._connection.seconds(timeout)
        metadata = self._connection.metadata(traceparent)
        call = method(request, timeout=seconds, metadata=metadata)
        async with _typed_errors(call, self._connection.address, seconds):
            return await call


@dataclass(frozen=True, slots=True)
class _Cancelled:
    """A call that gRPC calls cancelled, as the synchronous API tells of one."""

    words: str | None

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.CANCELLED

    def details(self) -> str | None:
        return self.words

    def trailing_metadata(self) -> None:
        return None


@asynccontextmanager
async def _typed_errors(call: Any, address: str, timeout: float | None) -> AsyncIterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise error_of(error, address, timeout) from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # gRPC tells a call that was cancelled, here or there, as if the task were.
        raise error_of(_Cancelled(await call.details()), address, timeout) from None
