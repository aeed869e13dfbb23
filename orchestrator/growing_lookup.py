"""A lookup that follows an answer while it is written; long prompts are entered beside the rounds.

Knows ids and the event loop, nothing of rounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.speculation.earlier_answers import EarlierAnswers
from orchestrator.speculation.lookup import Lookup, Match

LONG_PROMPT = 1024
"""Tokens that are entered at once: a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Earlier answers of requests with the same key."""

    answers: EarlierAnswers
    key: bytes


class GrowingLookup:
    """Of one answer; begins with the first `find`. `memory` is looked through as well, and gets the
    answer when it is closed."""

    def __init__(self, prompt_ids: Sequence[int], most: int, memory: Memory | None = None) -> None:
        """`most`: tokens that a guess may have; 0: none is ever found."""
        self._ids: list[int] = list(prompt_ids) if most else []
        self._prompt_tokens = len(self._ids)
        self._most = most
        self._memory = memory
        self._lookup: Lookup | None = None
        self._entering: asyncio.Task[Lookup] | None = None
        self._entered = 0

    def find(self, room: int) -> Match | None:
        """As `Lookup.find`, in what is entered and in earlier answers."""
        most = min(room, self._most)
        if most <= 0:
            return None
        own = self._find(most)
        if self._memory is None:
            return own
        earlier = self._memory.answers.match(self._memory.key, self._ids, most)
        if own is None or (earlier is not None and earlier.length > own.length):
            return earlier
        return own

    def extend(self, ids: Sequence[int]) -> None:
        """The text goes on with these."""
        if self._most:
            self._ids.extend(ids)

    def close(self) -> None:
        """What is being entered is dropped."""
        if self._entering is not None:
            self._entering.cancel()
        if self._memory is not None:
            self._memory.answers.add(self._memory.key, self._ids[self._prompt_tokens :])

    def _find(self, most: int) -> Match | None:
        lookup = self._ready()
        if lookup is None:
            return None
        lookup.extend(self._ids[self._entered :])
        self._entered = len(self._ids)
        return lookup.find(most)

    def _ready(self) -> Lookup | None:
        if self._lookup is None and self._entering is None:
            if len(self._ids) <= LONG_PROMPT:
                self._lookup = Lookup()
            else:
                self._entered = len(self._ids)
                self._entering = asyncio.ensure_future(asyncio.to_thread(Lookup, list(self._ids)))
        if self._lookup is None and self._entering is not None and self._entering.done():
            self._lookup = self._entering.result()
        return self._lookup
