"""What a client sends in a call, before a handler sees it: in time, whole, and of its type.

Knows neither services nor statuses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from google.protobuf.message import DecodeError

from uag_common.errors import DeadlineExceededError, InvalidRequestError
from uag_common.rpc.calls import OpenCalls

FIRST_MESSAGE_SECONDS = 60.0
"""For the greatest message over a slow line. A client that sends a byte now and then, or nothing,
would hold its call for ever."""

MAX_NAME_BYTES = 4096
"""Health and reflection are asked for names, and keep what they are asked for."""


class _Malformed:
    """Stands for bytes that are no message, so that they too are refused by a typed error."""


def forgiving(deserialize: Callable[[bytes], Any], most_bytes: int) -> Callable[[bytes], Any]:
    """A deserializer that leaves it to `arriving` to refuse bytes that are no message."""

    def call(data: bytes) -> Any:
        if len(data) > most_bytes:
            return _Malformed()
        try:
            return deserialize(data)
        except DecodeError:
            return _Malformed()

    return call


async def arriving(
    requests: AsyncIterator[Any], calls: OpenCalls, first_seconds: float
) -> AsyncGenerator[Any, None]:
    """The messages of a call, one of `calls`. Raises DeadlineExceededError if the first is not
    there in time, InvalidRequestError for one that is none of its type, and PeerUnavailableError
    where the server ends while it waits for one."""
    incoming = aiter(requests)
    try:
        async with aclosing(_timely(incoming, calls, first_seconds)) as messages:
            async for message in messages:
                if isinstance(message, _Malformed):
                    raise InvalidRequestError("request", "is no valid protobuf message of its type")
                yield message
    finally:
        await _end(incoming)


async def _timely(
    requests: AsyncIterator[Any], calls: OpenCalls, first_seconds: float
) -> AsyncGenerator[Any, None]:
    seconds: float | None = first_seconds
    while True:
        try:
            async with calls.waiting(seconds):
                message = await anext(requests)
        except StopAsyncIteration:
            return
        except TimeoutError:
            problem = f"the first message was not complete within {first_seconds:g} s"
            raise DeadlineExceededError(problem) from None
        yield message
        seconds = None


async def _end(requests: AsyncIterator[Any]) -> None:
    # gRPC's is a generator that knows itself, and would hold its last message until the garbage
    # collector comes by.
    if isinstance(requests, AsyncGenerator):
        await requests.aclose()


async def only(messages: AsyncIterator[Any]) -> Any:
    """The message of a call that has one. Raises InvalidRequestError if it has none."""
    async for message in messages:
        return message
    raise InvalidRequestError("request", "is missing, or was cut off")
