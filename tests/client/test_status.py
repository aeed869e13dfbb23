"""From the status of a call to its typed error."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2

from orchestrator.client import (
    AccessDeniedError,
    CallCancelledError,
    ClientError,
    ConnectError,
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PromptTooLongError,
    UnavailableError,
    UnimplementedError,
)
from orchestrator.client.status import error_of
from tests.scripted_orchestrator import status_details
from uag_common.rpc.status_details import DETAILS_KEY

ADDRESS = "host:1"
CODES = grpc.StatusCode
BAD_REQUEST = error_details_pb2.BadRequest(
    field_violations=[
        error_details_pb2.BadRequest.FieldViolation(field="sampling.top_k", description="is 0"),
        error_details_pb2.BadRequest.FieldViolation(field="later", description="no matter"),
    ]
)
RETRY = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2, nanos=500_000_000))
OTHER = error_details_pb2.ErrorInfo(reason="OVERLOADED", domain="uag")


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that failed."""

    status: grpc.StatusCode
    words: str | None = "words"
    trailing: tuple[tuple[str, str | bytes], ...] | None = ()

    def code(self) -> grpc.StatusCode:
        return self.status

    def details(self) -> str | None:
        return self.words

    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...] | None:
        return self.trailing


def failed(code: grpc.StatusCode, *details: bytes) -> ClientError:
    trailing = tuple((DETAILS_KEY, content) for content in details)
    return error_of(Failed(code, trailing=trailing), ADDRESS, None)


KINDS = {
    CODES.INVALID_ARGUMENT: InvalidRequestError,
    CODES.OUT_OF_RANGE: PromptTooLongError,
    CODES.NOT_FOUND: NotFoundError,
    CODES.UNAUTHENTICATED: AccessDeniedError,
    CODES.PERMISSION_DENIED: AccessDeniedError,
    CODES.RESOURCE_EXHAUSTED: OverloadedError,
    CODES.UNAVAILABLE: UnavailableError,
    CODES.DEADLINE_EXCEEDED: DeadlineExceededError,
    CODES.CANCELLED: UnavailableError,
    CODES.UNIMPLEMENTED: UnimplementedError,
}


@pytest.mark.parametrize("code", [code for code in CODES if code is not CODES.OK])
def test_each_status_has_its_type_and_is_told(code: grpc.StatusCode) -> None:
    error = failed(code)
    assert type(error) is KINDS.get(code, InternalError)
    assert f"{code.name}: words" in str(error)


def test_a_refusal_names_the_field() -> None:
    content = status_details(CODES.INVALID_ARGUMENT, OTHER, BAD_REQUEST)
    error = failed(CODES.INVALID_ARGUMENT, content)
    assert isinstance(error, InvalidRequestError)
    assert (error.argument, error.field, error.problem) == ("top_k", "sampling.top_k", "is 0")
    assert str(error) == "INVALID_ARGUMENT: top_k: is 0"


def test_an_overloaded_server_says_when_to_come_again() -> None:
    error = failed(CODES.RESOURCE_EXHAUSTED, status_details(CODES.RESOURCE_EXHAUSTED, OTHER, RETRY))
    assert isinstance(error, OverloadedError)
    assert error.retry_after == 2.5


@pytest.mark.parametrize(
    "details",
    [
        (),
        (b"\xff\xff\xff",),
        (status_details(CODES.INVALID_ARGUMENT),),
        (status_details(CODES.INVALID_ARGUMENT, OTHER),),
        (status_details(CODES.INVALID_ARGUMENT, error_details_pb2.BadRequest()),),
    ],
    ids=["none", "broken", "empty", "others", "no violation"],
)
def test_without_details_the_type_is_the_same(details: tuple[bytes, ...]) -> None:
    refused = failed(CODES.INVALID_ARGUMENT, *details)
    assert isinstance(refused, InvalidRequestError)
    assert (refused.argument, refused.field, refused.problem) == (None, None, None)
    full = failed(CODES.RESOURCE_EXHAUSTED, *details)
    assert isinstance(full, OverloadedError)
    assert full.retry_after is None


def test_no_metadata_and_no_words_are_no_error_of_their_own() -> None:
    error = error_of(Failed(CODES.INVALID_ARGUMENT, words=None, trailing=None), ADDRESS, 1.0)
    assert str(error) == "INVALID_ARGUMENT: "


def test_the_deadline_is_told() -> None:
    error = error_of(Failed(CODES.DEADLINE_EXCEEDED), ADDRESS, 0.7)
    assert str(error) == "DEADLINE_EXCEEDED: no end after 0.7 s"


@pytest.mark.parametrize(
    "words",
    [
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
        "Failed to connect to remote host: Connection refused",
        "errors resolving host:1: no such host",
    ],
)
def test_no_connection_names_the_address(words: str) -> None:
    error = error_of(Failed(CODES.UNAVAILABLE, words), ADDRESS, None)
    assert isinstance(error, ConnectError)
    assert str(error).startswith("cannot connect to host:1: ")
    assert "all addresses" not in str(error)


@pytest.mark.parametrize("words", ["Locally cancelled by application!", "Channel closed!"])
def test_a_call_that_was_closed_here_is_told_from_one_that_the_server_ended(words: str) -> None:
    closed = error_of(Failed(CODES.CANCELLED, words), ADDRESS, None)
    assert isinstance(closed, CallCancelledError)
    ended = error_of(Failed(CODES.CANCELLED, "CANCELLED"), ADDRESS, None)
    assert isinstance(ended, UnavailableError)
    assert str(ended).startswith("host:1 ended the call")


def test_a_server_without_tls_is_told_in_a_word() -> None:
    words = (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: SSL_ERROR_SSL: "
        "error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER: Invalid certificate"
    )
    error = error_of(Failed(CODES.UNAVAILABLE, words), ADDRESS, None)
    assert str(error) == "cannot connect to host:1: the server there speaks no TLS"
