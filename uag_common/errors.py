"""The typed errors of all parts. Knows no gRPC: a status is a name, mapped once in `rpc.errors`."""

from __future__ import annotations

from typing import ClassVar, Literal

Status = Literal[
    "INVALID_ARGUMENT",
    "OUT_OF_RANGE",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
    "DEADLINE_EXCEEDED",
    "CANCELLED",
    "UNAVAILABLE",
    "UNAUTHENTICATED",
    "UNIMPLEMENTED",
    "INTERNAL",
]


class UagError(Exception):
    """A failure that a caller is told of: what is wrong, and what would be right."""

    status: ClassVar[Status] = "INTERNAL"


class InvalidRequestError(UagError):
    """A field of a request is wrong; `field` is its path in the request message."""

    status = "INVALID_ARGUMENT"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class PromptTooLongError(UagError):
    """The prompt does not fit into the model's context."""

    status = "OUT_OF_RANGE"


class StaleContextError(UagError):
    """A command was meant for another context than the session holds."""

    status = "FAILED_PRECONDITION"


class ModelNotFoundError(UagError):
    """No model under that id or directory."""

    status = "NOT_FOUND"


class OverloadedError(UagError):
    """A service has no room for the request now; `retry_seconds`, where it is known: how long to
    wait before the next try."""

    status = "RESOURCE_EXHAUSTED"

    def __init__(self, problem: str, retry_seconds: float | None = None) -> None:
        super().__init__(problem)
        self.retry_seconds = retry_seconds


class DeadlineExceededError(UagError):
    """What a call had to do by some time was not done: a session without a command, a message that
    did not come to its end."""

    status = "DEADLINE_EXCEEDED"


class PeerUnavailableError(UagError):
    """A service that this one needs cannot be reached, or went away."""

    status = "UNAVAILABLE"


class PeerRefusedError(UagError):
    """A service refused a command for a reason that lies neither with the client nor the wire.
    `refusal`: what it found wrong with which field of the command, if it told."""

    def __init__(self, problem: str, refusal: InvalidRequestError | None = None) -> None:
        super().__init__(problem)
        self.refusal = refusal


class InternalError(UagError):
    """A failure of our own that a caller can do nothing about."""


class StartError(UagError):
    """The process cannot start: one line that names the setting and the remedy."""


def first_line(error: Exception) -> str:
    """Of an error that is not ours: its kind and the first line of what it says."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
