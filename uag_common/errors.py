"""The typed errors of all parts. Knows no gRPC: a status is a name, mapped once in `rpc.errors`."""

from __future__ import annotations

from typing import ClassVar, Literal

Status = Literal[
    "INVALID_ARGUMENT",
    "OUT_OF_RANGE",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
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
    """A service has no room for the request now."""

    status = "RESOURCE_EXHAUSTED"


class PeerUnavailableError(UagError):
    """A service that this one needs cannot be reached, or went away."""

    status = "UNAVAILABLE"


class PeerRefusedError(UagError):
    """A service refused a command for a reason that lies neither with the client nor the wire."""


class StartError(UagError):
    """The process cannot start: one line that names the setting and the remedy."""
