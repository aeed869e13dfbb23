"""Finds stop sequences in a text that grows. Knows characters, nothing of tokens or answers.

Knuth, Morris and Pratt's search, one for each sequence: a character is looked at once, however the
text is cut into parts, and what a sequence may yet become of the text's end is known at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """A sequence that the text has, and where it ends in the part of the text that completed it."""

    sequence: str
    end: int


class StopSearch:
    """A search for sequences, none of them empty."""

    def __init__(self, sequences: Sequence[str]) -> None:
        # Where two end at one character, the one that began first is found, then the first listed.
        self._growing = [_Growing(text) for text in sorted(sequences, key=len, reverse=True)]

    @property
    def growing(self) -> int:
        """Characters at the end of the text that more text may make a sequence of."""
        return max((each.length for each in self._growing), default=0)

    def find(self, part: str) -> Match | None:
        """The match that ends first in the next part of the text. There the search is over."""
        for end, character in enumerate(part, start=1):
            if completed := self._step(character):
                return Match(completed[0].sequence, end)
        return None

    def skip(self, part: str) -> None:
        """The next part of the text: what ends in it is no match, what begins in it may be one."""
        for character in part:
            self._step(character)

    def _step(self, character: str) -> list[_Growing]:
        """The sequences that the character completes."""
        return [each for each in self._growing if each.step(character)]


class _Growing:
    """The longest beginning of one sequence, but the whole, that the text ends with."""

    __slots__ = ("_borders", "length", "sequence")

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence
        self.length = 0
        self._borders = _borders(sequence)

    def step(self, character: str) -> bool:
        """Whether the character completes the sequence."""
        while self.length and self.sequence[self.length] != character:
            self.length = self._borders[self.length]
        if self.sequence[self.length] == character:
            self.length += 1
        if self.length < len(self.sequence):
            return False
        self.length = self._borders[self.length]
        return True


def _borders(sequence: str) -> list[int]:
    """For each beginning of the sequence, by its length, the longest shorter one it ends with."""
    borders, length = [0, 0], 0
    for character in sequence[1:]:
        while length and sequence[length] != character:
            length = borders[length]
        if sequence[length] == character:
            length += 1
        borders.append(length)
    return borders
