"""A typed error as a gRPC status with details of `google.rpc`, and back.

Knows the form of a status on the wire, and no call. The details are those of
google/rpc/error_details.proto, in the trailing metadata `grpc-status-details-bin`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from uag_common.errors import InvalidRequestError, OverloadedError, UagError

DOMAIN = "uag"
DETAILS_KEY = "grpc-status-details-bin"

MAX_TEXT_BYTES = 512
"""Of a text in a status. It is there up to three times, percent-encoded and in base64, and clients
and proxies refuse trailing metadata of more than 4 to 8 KB."""


@dataclass(frozen=True, slots=True)
class StatusDetails:
    """What a status tells besides its code and message. None: nothing of that kind."""

    refusal: InvalidRequestError | None = None
    retry_seconds: float | None = None


def to_status(error: UagError) -> grpc.Status:
    """Code, message and trailing metadata that tell of `error`; long texts are cut."""
    status = Status(code=grpc.StatusCode[error.status].value[0], message=_cut(str(error)))
    for detail in _details(error):
        status.details.add().Pack(detail)
    return rpc_status.to_status(status)


def read_details(trailing_metadata: Iterable[Any]) -> StatusDetails:
    """What the trailing metadata of a call (keys and values) tell. Nothing, if a peer sends what is
    no status."""
    refusal = retry_seconds = None
    for detail in _packed(trailing_metadata):
        if isinstance(detail, BadRequest) and detail.field_violations:
            violation = detail.field_violations[0]
            refusal = InvalidRequestError(violation.field, violation.description)
        elif isinstance(detail, RetryInfo):
            retry_seconds = max(0.0, detail.retry_delay.ToNanoseconds() / 1e9)
    return StatusDetails(refusal, retry_seconds)


def _details(error: UagError) -> Iterator[Message]:
    name = type(error).__name__.removesuffix("Error")
    yield ErrorInfo(reason=re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(), domain=DOMAIN)
    if isinstance(error, InvalidRequestError):
        violation = BadRequest.FieldViolation(
            field=_cut(error.field), description=_cut(error.problem)
        )
        yield BadRequest(field_violations=[violation])
    if isinstance(error, OverloadedError) and error.retry_seconds is not None:
        delay = Duration()
        delay.FromNanoseconds(round(error.retry_seconds * 1e9))
        yield RetryInfo(retry_delay=delay)


def _packed(trailing_metadata: Iterable[Any]) -> Iterator[Message]:
    for key, value in trailing_metadata:
        if key != DETAILS_KEY or not isinstance(value, bytes):
            continue
        try:
            for packed in Status.FromString(value).details:
                for kind in (BadRequest(), RetryInfo()):
                    if packed.Unpack(kind):
                        yield kind
        except DecodeError:
            return


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    if len(data) <= MAX_TEXT_BYTES:
        return data.decode()
    return data[: MAX_TEXT_BYTES - 3].decode(errors="ignore") + "…"
