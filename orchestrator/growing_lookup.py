"""A lookup that follows an answer while it is written, and what was answered before. No grpc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.speculation.earlier_answers import EarlierAnswers
from orchestrator.speculation.lookup import Lookup, Match

MOST_OF_PROMPT = 1 << 15
"""Tokens at a prompt's end that are entered: some ten milliseconds, in which nobody else is served.
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """Earlier answers of requests with the same key."""

    answers: EarlierAnswers
    key: bytes


class GrowingLookup:
    """Of one answer. `memory` is looked through as well, and gets the answer when it is closed."""

    def __init__(self, prompt_ids: Sequence[int], most: int, memory: Memory | None = None) -> None:
        """`most`: tokens that a guess may have; 0: none is ever found."""
        self._ids: list[int] = list(prompt_ids[-MOST_OF_PROMPT:]) if most else []
        self._prompt_tokens = len(self._ids)
        self._most = most
        self._memory = memory
        self._lookup: Lookup | None = None
        self._entered = 0

    def prepare(self) -> None:
        """Enters the prompt; else the first `find` does."""
        if self._most:
            self._whole()

    def find(self, room: int) -> Match | None:
        """As `Lookup.find`, in the text until now and in earlier answers."""
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
        """The answer is over."""
        if self._memory is not None:
            self._memory.answers.add(self._memory.key, self._ids[self._prompt_tokens :])

    def _find(self, most: int) -> Match | None:
        lookup = self._whole()
        lookup.extend(self._ids[self._entered :])
        self._entered = len(self._ids)
        return lookup.find(most)

    def _whole(self) -> Lookup:
        if self._lookup is None:
            self._lookup, self._entered = Lookup(self._ids), len(self._ids)
        return self._lookup
