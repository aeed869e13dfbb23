"""The typed errors of a call. Plain values: how a status becomes one of them stands in `status`."""

from __future__ import annotations

from uag_common.errors import UagError


class ClientError(UagError):
    """A call failed. `status` is the name of the gRPC status that it ended with."""


class ClosedError(ClientError):
    """The client was closed before the call."""

    status = "CANCELLED"


class InvalidRequestError(ClientError):
    """An argument is wrong, whoever asks and whenever. `argument` is the one of `generate`, with an
    index where it has many values; `field` its path in `GenerateRequest`; `problem` what is wrong
    with it. All None where the server tells none."""

    status = "INVALID_ARGUMENT"

    def __init__(
        self,
        told: str,
        argument: str | None = None,
        field: str | None = None,
        problem: str | None = None,
    ) -> None:
        super().__init__(told)
        self.argument = argument
        self.field = field
        self.problem = problem


class PromptTooLongError(ClientError):
    """The prompt does not fit into the target's context."""

    status = "OUT_OF_RANGE"


class NotFoundError(ClientError):
    """The server does not know what the request names."""

    status = "NOT_FOUND"


class AccessDeniedError(ClientError):
    """The server wants another API key, or a client certificate."""

    status = "UNAUTHENTICATED"


class OverloadedError(ClientError):
    """There is no room for the request now. `retry_after`: seconds after which the server would
    have it again, if it says so."""

    status = "RESOURCE_EXHAUSTED"

    def __init__(self, told: str, retry_after: float | None = None) -> None:
        super().__init__(told)
        self.retry_after = retry_after


class UnavailableError(ClientError):
    """The server, or the target behind it, cannot be reached or went away."""

    status = "UNAVAILABLE"


class ConnectError(UnavailableError):
    """No connection could be made; the request did not leave."""


class DeadlineExceededError(ClientError):
    """The call took longer than its timeout."""

    status = "DEADLINE_EXCEEDED"


class CallCancelledError(ClientError):
    """The call was closed on this side."""

    status = "CANCELLED"


class UnimplementedError(ClientError):
    """What answers is no orchestrator, or one that is too old for this call."""

    status = "UNIMPLEMENTED"


class InternalError(ClientError):
    """The server failed, or ended the call with a status that says nothing of the request."""
