"""Calls an orchestrator: plain values in, events out. Knows gRPC, no terminal."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Self

import grpc

from orchestrator.cli.messages import decode_event, encode_request
from orchestrator.events import Event
from orchestrator.request import AnswerRequest
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag_common.addresses import answers
from uag_common.errors import PeerUnavailableError, UagError
from uag_common.rpc.channel import CLIENT_OPTIONS


class CallFailedError(UagError):
    """A call ended with a status that says nothing of the request or of the network."""


class RequestRefusedError(UagError):
    """The server will not answer this request, whoever asks and whenever."""

    status = "INVALID_ARGUMENT"


class OrchestratorClient:
    """The orchestrator at `address` ("host:port"); connects when it is first called."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._channel = grpc.insecure_channel(address, options=CLIENT_OPTIONS)
        self._stub = orchestrator_pb2_grpc.OrchestratorStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def answer(
        self, request: AnswerRequest, timeout_seconds: float
    ) -> Generator[Event, None, None]:
        """The events of one answer; an iterator that is closed early ends the call.

        Raises PeerUnavailableError, RequestRefusedError or CallFailedError, each with the status
        that the server gave.
        """
        with closing(self.responses(request, timeout_seconds)) as responses:
            for response in responses:
                yield decode_event(response)

    def responses(
        self, request: AnswerRequest, timeout_seconds: float
    ) -> Generator[pb.GenerateResponse, None, None]:
        """As `answer`, but the messages as they came."""
        call = self._stub.Generate(encode_request(request), timeout=timeout_seconds)
        try:
            with self._typed_errors(timeout_seconds):
                yield from call
        finally:
            call.cancel()

    @contextmanager
    def _typed_errors(self, timeout_seconds: float) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise self._explain(error.code(), error.details() or "", timeout_seconds) from error

    def _explain(self, code: grpc.StatusCode, details: str, timeout_seconds: float) -> UagError:
        told = f"{code.name}: {details}"
        match code:
            case grpc.StatusCode.INVALID_ARGUMENT | grpc.StatusCode.OUT_OF_RANGE:
                return RequestRefusedError(told)
            case grpc.StatusCode.UNAVAILABLE if not answers(self.address):
                return PeerUnavailableError(
                    f"nothing answers at {self.address}: start the services there with `uag up`, "
                    "or give the orchestrator's address with --target HOST:PORT"
                )
            case grpc.StatusCode.UNAVAILABLE:
                return PeerUnavailableError(told)
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return CallFailedError(f"{code.name}: no end after {timeout_seconds:g} s")
            case grpc.StatusCode.UNIMPLEMENTED:
                return CallFailedError(f"{self.address} is no orchestrator ({told})")
        return CallFailedError(told)
