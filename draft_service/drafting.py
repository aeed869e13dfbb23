"""The tokens of one proposal while they are drafted: the model's thread fills, a loop reads.

Knows no model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DraftToken:
    """A drafted id and the draft model's probability of it."""

    id: int
    probability: float


class Drafting:
    """Made in the event loop. `superseded` tells, on the model's thread, whether the proposal is
    wanted no longer."""

    def __init__(
        self,
        superseded: Callable[[], bool],
        loop: asyncio.AbstractEventLoop | None = None,
        first: int = 1,
    ) -> None:
        """`loop`: wants to know of each token, from the `first` on."""
        self.superseded = superseded
        self._tokens: list[DraftToken] = []
        self._read = 0
        self._loop = loop
        self._first = first
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._tokens)

    def append(self, token: DraftToken) -> None:
        """On the model's thread."""
        self._tokens.append(token)
        if self._loop is not None and len(self._tokens) >= self._first:
            self._loop.call_soon_threadsafe(self._changed.set)

    def new(self) -> tuple[DraftToken, ...]:
        """Those that were not read yet."""
        tokens = tuple(self._tokens[self._read :])
        self._read += len(tokens)
        return tokens

    def wake(self, _: object = None) -> None:
        """Lets `changed` go on, in the event loop."""
        self._changed.set()

    async def changed(self) -> None:
        """Until there is a token more."""
        await self._changed.wait()
        self._changed.clear()
