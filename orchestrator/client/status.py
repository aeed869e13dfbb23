"""From the status of a failed call to its typed error. Knows gRPC, no call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import grpc

from orchestrator.client.errors import (
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
from orchestrator.client.fields import argument_of
from uag_common.rpc.status_details import read_details

# How gRPC itself says that this side ended a call, that no connection came about, and what stands
# before the reason.
_ENDED_HERE = ("Locally cancelled", "Channel closed")
_NO_CONNECTION = ("failed to connect to all addresses", "errors resolving")
_NO_TLS = "WRONG_VERSION_NUMBER"
_PREAMBLE = "Failed to connect to remote host: "

_PLAIN: dict[grpc.StatusCode, type[ClientError]] = {
    grpc.StatusCode.OUT_OF_RANGE: PromptTooLongError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.UNAUTHENTICATED: AccessDeniedError,
    grpc.StatusCode.PERMISSION_DENIED: AccessDeniedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
}


class FailedCall(Protocol):
    """What a failed call of either API tells."""

    def code(self) -> grpc.StatusCode: ...

    def details(self) -> str | None: ...

    def trailing_metadata(self) -> Iterable[Any] | None: ...


def error_of(call: FailedCall, address: str, timeout: float | None) -> ClientError:
    """The typed error of a call to `address` that had `timeout` seconds. A server that sends no
    details, or broken ones, gets the same type without their fields."""
    code, details = call.code(), call.details() or ""
    told, more = f"{code.name}: {details}", read_details(call.trailing_metadata() or ())
    match code:
        case grpc.StatusCode.INVALID_ARGUMENT if refusal := more.refusal:
            argument = argument_of(refusal.field)
            told = f"{code.name}: {argument}: {refusal.problem}"
            return InvalidRequestError(told, argument, refusal.field, refusal.problem)
        case grpc.StatusCode.INVALID_ARGUMENT:
            return InvalidRequestError(told)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return OverloadedError(told, more.retry_seconds)
        case grpc.StatusCode.CANCELLED if any(words in details for words in _ENDED_HERE):
            return CallCancelledError("CANCELLED: the call was closed on this side")
        case grpc.StatusCode.CANCELLED:
            # What a server does with a call that it can no longer take when it ends.
            return UnavailableError(f"{address} ended the call, it may be shutting down ({told})")
        case grpc.StatusCode.UNAVAILABLE if details.startswith(_NO_CONNECTION):
            reason = details.rpartition(_PREAMBLE)[2]
            if _NO_TLS in details:
                reason = "the server there speaks no TLS"
            return ConnectError(f"cannot connect to {address}: {reason}")
        case grpc.StatusCode.DEADLINE_EXCEEDED if timeout is not None:
            return DeadlineExceededError(f"{code.name}: no end after {timeout:g} s")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceededError(told)
        case grpc.StatusCode.UNIMPLEMENTED:
            return UnimplementedError(
                f"{address} is no orchestrator, or too old for this call ({told})"
            )
    return _PLAIN.get(code, InternalError)(told)
