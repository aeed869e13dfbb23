"""The client of programs with threads. Knows gRPC's synchronous API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class ResponseStream(Iterator[pb.GenerateResponse]):
    """The messages of one call as they come; errors are typed."""

    def __init__(self, call: Any, address: str, timeout: float | None) -> None:
        self._call = call
        self._address = address
        self._timeout = timeout

    def __next__(self) -> pb.GenerateResponse:
        try:
            response: pb.GenerateResponse = next(self._call)
        except grpc.RpcError as error:
            raise error_of(error, self._address, self._timeout) from error
        return response

    def close(self) -> None:
        """Cancels the call; harmless if it is over."""
        self._call.cancel()


class AnswerStream(Transcript, Iterator[Delta]):
    """One request being answered: an iterator over the deltas of all its answers.

    It keeps what came, for `started`, `text`, `tokens`, `finished` and `answer`. Closing it, or
    leaving its `with` block, cancels the call and frees what it holds on the server; whoever reads
    on gets CallCancelledError.
    """

    def __init__(self, responses: ResponseStream) -> None:
        super().__init__()
        self._responses = responses

    def __next__(self) -> Delta:
        for response in self._responses:
            event = decode_event(response)
            self._add(event)
            if isinstance(event, Delta):
                return event
        self._whole()
        raise StopIteration

    def answer(self) -> Answer:
        """All of it; reads on to the end."""
        for _ in self:
            pass
        return self._whole()

    def close(self) -> None:
        self._responses.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Client:
    """An orchestrator at "host:port". Connects when it is first called; may be used by several
    threads.

    `timeout`: seconds of a call that names none itself, None: no end. `tls`: True for the system's
    authorities. `api_key` goes with each call, and without TLS only to this machine, unless
    `allow_insecure_key`. Raises ValueError for what cannot be: BadAddressError for an address,
    InsecureKeyError for such a key.

    Every call raises ClientError, one of its subclasses by the kind of failure, and TypeError or
    ValueError for arguments that make no request. Nothing is sent twice: a caller who wants to try
    again does so.
    """

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
        self._channel = self._connection.open()
        self._open_stub = orchestrator_pb2_grpc.OrchestratorStub(self._channel)
        self._closed = False

    @property
    def _stub(self) -> Any:
        if self._closed:
            raise ClosedError("the client is closed")
        return self._open_stub

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels what is running and closes the connection."""
        self._closed = True
        self._channel.close()

    def generate(
        self,
        prompt: Prompt,
        *,
        timeout: float | None = None,
        traceparent: str | None = None,
        **options: Unpack[Options],
    ) -> AnswerStream:
        """Answers as they are written. `timeout`: seconds for the whole answer; `traceparent`: the
        caller's trace, which the request becomes a part of."""
        return AnswerStream(
            self.responses(prompt, timeout=timeout, traceparent=traceparent, **options)
        )

    def complete(
        self,
        prompt: Prompt,
        *,
        timeout: float | None = None,
        traceparent: str | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """As `generate`, but in one piece when all is written."""
        request = encode_request(prompt, options)
        return decode_answer(self._call(self._stub.GenerateUnary, request, timeout, traceparent))

    def responses(
        self,
        prompt: Prompt,
        *,
        timeout: float | None = None,
        traceparent: str | None = None,
        **options: Unpack[Options],
    ) -> ResponseStream:
        """As `generate`, but the messages of the contract as they come."""
        seconds = self._connection.seconds(timeout)
        call = self._stub.Generate(
            encode_request(prompt, options),
            timeout=seconds,
            metadata=self._connection.metadata(traceparent),
        )
        return ResponseStream(call, self._connection.address, seconds)

    def describe(self, *, timeout: float | None = None) -> Models:
        """Which models answer."""
        request = pb.DescribeModelRequest()
        return decode_models(self._call(self._stub.DescribeModel, request, timeout))

    def tokenize(self, prompt: Prompt, *, timeout: float | None = None) -> Tokenization:
        """The target's ids of a text or a conversation, exactly as `generate` has them."""
        request = encode_tokenize(prompt)
        return decode_tokenization(self._call(self._stub.Tokenize, request, timeout))

    def detokenize(self, ids: Iterable[int], *, timeout: float | None = None) -> str:
        """The text that an answer of these ids of the target is shown as."""
        request = encode_detokenize(ids)
        response: pb.DetokenizeResponse = self._call(self._stub.Detokenize, request, timeout)
        return response.text

    def _call(
        self, method: Any, request: Any, timeout: float | None, traceparent: str | None = None
    ) -> Any:
        seconds = self._connection.seconds(timeout)
        metadata = self._connection.metadata(traceparent)
        try:
            return method(request, timeout=seconds, metadata=metadata)
        except grpc.RpcError as error:
            raise error_of(error, self._connection.address, seconds) from error
