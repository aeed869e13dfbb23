"""What a process meets when one of those that share its model is lost, and how it is told."""

from __future__ import annotations

from typing import ClassVar

from uag_common.errors import Status, UagError, first_line


class RankLostError(UagError):
    """A process that shares the model with this one ended, failed or hangs: no step can be made any
    more, and this one ends too."""

    status: ClassVar[Status] = "UNAVAILABLE"


def failure(error: Exception) -> str:
    """In one line."""
    return f"failed: {error if isinstance(error, UagError) else first_line(error)}"
