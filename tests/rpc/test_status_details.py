"""What is told of an error in a status, and what is read out of one."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.any_pb2 import Any as Packed
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from uag_common.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    OverloadedError,
    PeerRefusedError,
    PromptTooLongError,
    UagError,
)
from uag_common.rpc.status_details import DETAILS_KEY, StatusDetails, read_details, to_status

MOST_METADATA_BYTES = 4096


def packed(error: UagError) -> Status:
    """The status in the trailing metadata, as a client in any language finds it."""
    ((key, value),) = to_status(error).trailing_metadata
    assert key == "grpc-status-details-bin"
    return Status.FromString(value)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (InvalidRequestError("a", "b"), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
        (PromptTooLongError("a"), grpc.StatusCode.OUT_OF_RANGE, "PROMPT_TOO_LONG"),
        (OverloadedError("a"), grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED"),
        (DeadlineExceededError("a"), grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
        (PeerRefusedError("a"), grpc.StatusCode.INTERNAL, "PEER_REFUSED"),
        (InternalError("a"), grpc.StatusCode.INTERNAL, "INTERNAL"),
    ],
)
def test_each_error_tells_its_kind(error: UagError, code: grpc.StatusCode, reason: str) -> None:
    status, details = to_status(error), packed(error)
    assert status.code is code
    assert (details.code, details.message) == (code.value[0], status.details)
    info = ErrorInfo()
    assert details.details[0].Unpack(info)
    assert (info.reason, info.domain) == (reason, "uag")


def test_a_wrong_field_is_named() -> None:
    error = InvalidRequestError("sampling.top_p", "must be above 0")
    bad = BadRequest()
    assert packed(error).details[1].Unpack(bad)
    (violation,) = bad.field_violations
    assert (violation.field, violation.description) == ("sampling.top_p", "must be above 0")
    refusal = read_details(to_status(error).trailing_metadata).refusal
    assert refusal is not None
    assert (refusal.field, refusal.problem) == ("sampling.top_p", "must be above 0")


@pytest.mark.parametrize("seconds", [0.0, 0.25, 1.5, 90.0])
def test_the_time_of_the_next_try_is_told(seconds: float) -> None:
    error = OverloadedError("full", retry_seconds=seconds)
    retry = RetryInfo()
    assert packed(error).details[1].Unpack(retry)
    assert retry.retry_delay.ToMicroseconds() == round(seconds * 1e6)
    assert read_details(to_status(error).trailing_metadata).retry_seconds == seconds


def test_no_time_is_told_where_none_is_known() -> None:
    assert len(packed(OverloadedError("full")).details) == 1
    assert read_details(to_status(OverloadedError("full")).trailing_metadata) == StatusDetails()


@pytest.mark.parametrize("text", ["x" * 10**6, "\u2029" * 10**6, "\U0001f600" * 10**6, "\ud800x"])
def test_a_status_stays_small_whatever_it_tells(text: str) -> None:
    status = to_status(InvalidRequestError(f"messages[{text}]", text))
    ((_, details),) = status.trailing_metadata
    on_the_wire = 3 * len(status.details.encode()) + len(details) * 4 / 3
    assert on_the_wire < MOST_METADATA_BYTES
    assert len(text) < 10 or status.details.endswith("…")


def test_short_texts_are_told_whole() -> None:
    text = "ü" * 200
    assert to_status(PromptTooLongError(text)).details == text


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        ((DETAILS_KEY, b"\xff\xff\xff"),),
        ((DETAILS_KEY, "a text"),),
        (("another-bin", Status(code=3).SerializeToString()),),
        (
            (
                DETAILS_KEY,
                Status(details=[Packed(type_url="no.Such", value=b"1")]).SerializeToString(),
            ),
        ),
        (
            (
                DETAILS_KEY,
                Status(
                    details=[
                        Packed(type_url="type.googleapis.com/google.rpc.BadRequest", value=b"\xff")
                    ]
                ).SerializeToString(),
            ),
        ),
    ],
)
def test_a_peer_that_tells_nothing_or_nonsense_is_no_failure(
    metadata: tuple[tuple[str, str | bytes], ...],
) -> None:
    assert read_details(metadata) == StatusDetails()
