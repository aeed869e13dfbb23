"""Typed errors to gRPC statuses and back: the one place that maps them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from uag_common.errors import (
    InvalidRequestError,
    OverloadedError,
    PeerRefusedError,
    PeerUnavailableError,
    PromptTooLongError,
    StaleContextError,
    UagError,
)
from uag_common.rpc.calls import OpenCalls

log = logging.getLogger(__name__)

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = Callable[[Any, Context], Any]

_UNREACHABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)


def from_rpc_error(peer: str, error: grpc.aio.AioRpcError) -> UagError:
    """What a failed call to `peer` means to its caller."""
    return from_status(peer, error.code(), error.details())


def from_status(peer: str, code: grpc.StatusCode, details: str | None) -> UagError:
    """What a call to `peer` that ended with `code` means to its caller."""
    told = f"{peer}: {details or code.name}"
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return StaleContextError(told)
    if code is grpc.StatusCode.OUT_OF_RANGE:
        return PromptTooLongError(told)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return OverloadedError(told)
    if code in _UNREACHABLE:
        return PeerUnavailableError(told)
    return PeerRefusedError(told)


class ErrorInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Ends a call with the status of the typed error that its handler raised."""

    def __init__(self, calls: OpenCalls) -> None:
        self._calls = calls

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        # Health and reflection come from libraries and end their calls themselves.
        if handler is None or not handler_call_details.method.startswith("/uag."):
            return handler
        if handler.stream_stream is not None:
            wrap = grpc.stream_stream_rpc_method_handler
            inner = _stream(handler.stream_stream, _whole_messages, self._calls)
        elif handler.unary_stream is not None:
            wrap = grpc.unary_stream_rpc_method_handler
            inner = _stream(handler.unary_stream, _whole, self._calls)
        else:
            wrap = grpc.unary_unary_rpc_method_handler
            inner = _unary(handler.unary_unary, self._calls)
        return wrap(inner, _forgiving(handler.request_deserializer), handler.response_serializer)


class _Malformed:
    """Stands for bytes that are no message, so that they too are refused by a typed error."""


def _forgiving(deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def call(data: bytes) -> Any:
        try:
            return deserialize(data)
        except DecodeError:
            return _Malformed()

    return call


def _whole(request: Any) -> Any:
    if isinstance(request, _Malformed):
        raise InvalidRequestError("request", "is no valid protobuf message of its type")
    return request


async def _whole_messages(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _whole(request)


def _stream(handler: Handler, checked: Callable[[Any], Any], calls: OpenCalls) -> Handler:
    async def call(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            with calls.one():
                async with aclosing(handler(checked(request), context)) as answers:
                    async for answer in answers:
                        yield answer
        except Exception as error:
            await _end(context, error)

    return call


def _unary(handler: Handler, calls: OpenCalls) -> Handler:
    async def call(request: Any, context: Context) -> Any:
        try:
            with calls.one():
                return await handler(_whole(request), context)
        except Exception as error:
            await _end(context, error)

    return call


async def _end(context: Context, error: Exception) -> NoReturn:
    """A typed error is told as it stands; a bug of ours is logged whole and told in a word."""
    if isinstance(error, UagError):
        await context.abort(grpc.StatusCode[error.status], str(error))
    log.error("unexpected failure in a call", exc_info=error)
    await context.abort(grpc.StatusCode.INTERNAL, "internal error; the server's log tells more")
    raise error
