"""Guesses by copying: what followed the last tokens where they stood before. Pure.

Knows the ids of one text, such as the prompt and the answer until now. It must not know rounds or
models.
(Prompt lookup: Saxena 2023; the search is the hash chain of LZ77 compressors.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST_KEY = 3
"""Tokens that are looked up at once; a match of more is found by comparing."""

MOST_PLACES = 8
"""Earlier places that are compared, the latest first: what a token costs does not depend on how
often the text repeats itself."""

LONGEST_MATCH = 32
"""Tokens of a match that are told apart; a longer one is no better a sign."""

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Match:
    """The last `length` tokens of the text stood before, and `ids` followed there."""

    length: int
    ids: tuple[int, ...]


class Lookup:
    """A text that grows, and where its n-grams stand. A token costs a constant time and memory."""

    def __init__(self, ids: Iterable[int] = ()) -> None:
        """What the text begins with is entered at a third of a microsecond a token: of each of its
        n-grams the last place alone is known."""
        self._ids: list[int] = list(ids)
        sizes = range(1, LONGEST_KEY + 1)
        # For each size of key: the place after its last occurrence, and by place the one before.
        self._last = tuple(self._places(size) for size in sizes)
        self._before = tuple([NOWHERE] * len(self._ids) for _ in sizes)

    def __len__(self) -> int:
        return len(self._ids)

    def extend(self, ids: Iterable[int]) -> None:
        """The text goes on with these."""
        for token_id in ids:
            self._enter()
            self._ids.append(token_id)

    def _places(self, size: int) -> dict[tuple[int, ...], int]:
        keys = zip(*(self._ids[first:] for first in range(size)), strict=False)
        # The text's own end is left out: nothing follows it yet.
        return dict(zip(keys, range(size, len(self._ids)), strict=False))

    def _enter(self) -> None:
        """The keys that end where the text ends now: only from now on something follows them."""
        place = len(self._ids)
        for size, (last, before) in enumerate(zip(self._last, self._before, strict=True), start=1):
            if place < size:
                before.append(NOWHERE)
                continue
            key = tuple(self._ids[place - size :])
            before.append(last.get(key, NOWHERE))
            last[key] = place

    def find(self, most: int) -> Match | None:
        """The longest match of the text's own end and at most `most` tokens that followed it, of
        equal ones the latest; None if not even the last token stood before."""
        return self.match(self._ids, most)

    def match(self, text: Sequence[int], most: int) -> Match | None:
        """As `find`, for the end of another text."""
        end = len(text)
        for size in range(min(LONGEST_KEY, end) if most > 0 else 0, 0, -1):
            place = self._last[size - 1].get(tuple(text[end - size :]), NOWHERE)
            if place != NOWHERE:
                return self._longest(text, place, size, most)
        return None

    def _longest(self, text: Sequence[int], place: int, size: int, most: int) -> Match:
        best, longest = place, 0
        for _ in range(MOST_PLACES):
            length = self._match_length(text, place, size)
            if length > longest:
                best, longest = place, length
            place = self._before[size - 1][place]
            if place == NOWHERE or longest == LONGEST_MATCH:
                break
        return Match(longest, tuple(self._continuation(best, most)))

    def _match_length(self, text: Sequence[int], place: int, known: int) -> int:
        ids, end, length = self._ids, len(text), known
        most = min(LONGEST_MATCH, place, end)
        while length < most and ids[place - 1 - length] == text[end - 1 - length]:
            length += 1
        return length

    def _continuation(self, place: int, most: int) -> Sequence[int]:
        """A text that repeats itself goes on past its own end: the copy is copied."""
        ids, end = self._ids, len(self._ids)
        copied = ids[place : place + most]
        period = end - place
        while len(copied) < most:
            copied.append(copied[len(copied) - period])
        return copied
