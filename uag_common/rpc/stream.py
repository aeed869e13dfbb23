"""The client's end of a session stream: one command, one answer, each with its deadline."""

from __future__ import annotations

import asyncio
import time
from typing import Generic, TypeVar, cast

import grpc

from uag_common.errors import PeerUnavailableError
from uag_common.rpc.errors import from_rpc_error, from_status

Command = TypeVar("Command")
Answer = TypeVar("Answer")


class SessionStream(Generic[Command, Answer]):
    """Wraps a bidirectional call. After an error the session is over: open another."""

    def __init__(self, peer: str, call: grpc.aio.StreamStreamCall[Command, Answer]) -> None:
        self._peer = peer
        self._call = call

    async def exchange(self, command: Command, timeout_seconds: float) -> tuple[Answer, float]:
        """Sends a command and waits for its answer: the answer, and the seconds it took. Raises
        the typed error of the peer's status, PeerUnavailableError if the peer ends the stream or
        does not answer in time."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._call.write(command)
                answer = await self._call.read()
        except TimeoutError:
            self._call.cancel()
            raise PeerUnavailableError(
                f"{self._peer} did not answer within {timeout_seconds:g} s"
            ) from None
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(self._peer, error) from error
        except asyncio.InvalidStateError:
            raise await self._ending() from None
        if answer is grpc.aio.EOF:  # type: ignore[attr-defined]
            raise await self._ending()
        return cast(Answer, answer), time.perf_counter() - began

    async def _ending(self) -> Exception:
        """Why the stream is over, once it is."""
        code, details = await self._call.code(), await self._call.details()
        if code is grpc.StatusCode.OK:
            return PeerUnavailableError(f"{self._peer} ended the session")
        return from_status(self._peer, code, details)

    def close(self) -> None:
        """Ends the session at the peer; harmless if it is over already."""
        self._call.cancel()
