"""Typed errors to gRPC statuses and back: the one place that maps them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, TypeAlias

import grpc

from uag_common.errors import (
    InternalError,
    OverloadedError,
    PeerRefusedError,
    PeerUnavailableError,
    PromptTooLongError,
    StaleContextError,
    UagError,
)
from uag_common.rpc.calls import OpenCalls
from uag_common.rpc.channel import MAX_MESSAGE_BYTES
from uag_common.rpc.messages import (
    FIRST_MESSAGE_SECONDS,
    MAX_NAME_BYTES,
    arriving,
    forgiving,
    only,
)
from uag_common.rpc.metadata import Context
from uag_common.rpc.observation import CallObserver
from uag_common.rpc.status_details import read_details, to_status

log = logging.getLogger(__name__)

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_UNREACHABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)


def from_rpc_error(peer: str, error: grpc.aio.AioRpcError) -> UagError:
    """What a failed call to `peer` means to its caller."""
    return from_status(peer, error.code(), error.details(), error.trailing_metadata())


def from_status(
    peer: str,
    code: grpc.StatusCode,
    message: str | None,
    trailing_metadata: Iterable[Any] | None,
) -> UagError:
    """What a call to `peer` that ended with `code` means to its caller."""
    told = f"{peer}: {message or code.name}"
    details = read_details(trailing_metadata or ())
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return StaleContextError(told)
    if code is grpc.StatusCode.OUT_OF_RANGE:
        return PromptTooLongError(told)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return OverloadedError(told, details.retry_seconds)
    if code in _UNREACHABLE:
        return PeerUnavailableError(told)
    return PeerRefusedError(told, details.refusal)


class ErrorInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Ends a call with the status of the typed error that its handler raised, and refuses what is
    no message before a handler sees it."""

    def __init__(
        self,
        calls: OpenCalls,
        observer: CallObserver,
        first_message_seconds: float = FIRST_MESSAGE_SECONDS,
    ) -> None:
        self._calls = calls
        self._observer = observer
        self._first_message_seconds = first_message_seconds

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        name = handler_call_details.method.removeprefix("/")
        return _Method(
            name, handler, self._calls, self._observer, self._first_message_seconds
        ).guarded()


@dataclass(frozen=True, slots=True)
class _Method:
    """A method as its service brought it, by its full name."""

    name: str
    handler: Handler
    calls: OpenCalls
    observer: CallObserver
    first_message_seconds: float

    @property
    def _ours(self) -> bool:
        """Health and reflection come from libraries, are small, and count for nothing."""
        return self.name.startswith("uag.")

    @contextmanager
    def _one_call(self, context: Context) -> Iterator[None]:
        if not self._ours:
            with BUGS_TOLD:
                yield
            return
        with self._observed(context), self.calls.one(), BUGS_TOLD:
            yield

    def _observed(self, context: Context) -> AbstractContextManager[None]:
        if self.handler.request_streaming:
            return self.observer.session(self.name, context)
        return self.observer.request(self.name, context)

    def guarded(self) -> Handler:
        """The method with its messages checked and its errors mapped. It takes a stream of messages
        in any case, which is the same on the wire: for a method of one message gRPC itself would
        wait without end, and would not end a call without one."""
        wrap: Callable[..., Handler] = (
            grpc.stream_stream_rpc_method_handler
            if self.handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        serve = self._answers if self.handler.response_streaming else self._answer
        deserialize = self.handler.request_deserializer
        if deserialize is not None:
            most = MAX_MESSAGE_BYTES if self._ours else MAX_NAME_BYTES
            deserialize = forgiving(deserialize, most)
        return wrap(serve, deserialize, self.handler.response_serializer)

    # A call is kept for a while after it has ended, and with it the frame that ends it: what a call
    # works with lives in frames of its own.

    async def _answers(self, requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
        try:
            async with aclosing(self._stream(requests, context)) as answers:
                async for answer in answers:
                    yield answer
            return
        except Exception as error:
            status = _told(error)
        await _abort(context, status)

    async def _stream(
        self, requests: AsyncIterator[Any], context: Context
    ) -> AsyncGenerator[Any, None]:
        with self._one_call(context):
            async with aclosing(self._checked(requests)) as messages:
                request = await self._taken(messages)
                if inspect.iscoroutinefunction(self._behaviour):
                    await self._behaviour(request, context)
                    return
                async with aclosing(self._behaviour(request, context)) as answers:
                    async for answer in answers:
                        yield answer

    async def _answer(self, requests: AsyncIterator[Any], context: Context) -> Any:
        try:
            return await self._single(requests, context)
        except Exception as error:
            status = _told(error)
        return await _abort(context, status)

    async def _single(self, requests: AsyncIterator[Any], context: Context) -> Any:
        with self._one_call(context):
            async with aclosing(self._checked(requests)) as messages:
                return await self._behaviour(await self._taken(messages), context)

    def _checked(self, requests: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        return arriving(requests, self.calls, self.first_message_seconds)

    async def _taken(self, messages: AsyncIterator[Any]) -> Any:
        return messages if self.handler.request_streaming else await only(messages)

    @property
    def _behaviour(self) -> Any:
        one = self.handler.unary_unary or self.handler.unary_stream
        return one or self.handler.stream_unary or self.handler.stream_stream


class _BugsTold:
    """Stands inside the span of what is done: a bug of ours is logged whole, in its trace, and told
    in a word."""

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, UagError | grpc.aio.BaseError):
            return
        log.error("unexpected failure in a call", exc_info=error)
        raise InternalError("internal error; the server's log tells more") from None


BUGS_TOLD = _BugsTold()


def _told(error: Exception) -> grpc.Status:
    """A typed error is told as it stands."""
    # A handler that ended its call itself, or a client that left, or what gRPC makes of its stream.
    if not isinstance(error, UagError):
        raise error
    return to_status(error)


async def _abort(context: Context, status: grpc.Status) -> NoReturn:
    await context.abort(status.code, status.details, status.trailing_metadata)
    raise RuntimeError("an aborted call goes on")
