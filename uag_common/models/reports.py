"""How the model store tells of its progress. Knows bytes and steps, must not know a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Transfer(Protocol):
    """One file on its way."""

    def reached(self, done_bytes: int) -> None:
        """So many bytes are here, counted from the start of the file. May go back to 0."""


class Progress(Protocol):
    """Somebody who wants to know how far it is."""

    def note(self, text: str) -> None:
        """A step begins that has no measure, such as a conversion."""

    def transfer(self, title: str, total_bytes: int) -> AbstractContextManager[Transfer]:
        """A file begins to arrive; the context lasts as long as its transfer."""


class _SilentTransfer:
    def reached(self, done_bytes: int) -> None:
        pass


class SilentProgress:
    """Nobody wants to know."""

    def note(self, text: str) -> None:
        """Nothing is said."""

    @contextmanager
    def transfer(self, title: str, total_bytes: int) -> Iterator[Transfer]:  # noqa: ARG002
        """Nothing is said."""
        yield _SilentTransfer()


SILENT = SilentProgress()
