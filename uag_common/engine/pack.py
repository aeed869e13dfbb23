"""One forward pass over several contexts, as numbers: what a process needs to run it, and nothing
else. Pure: no tensors, so that it can be sent to the processes that share a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uag_common.kv.table import Copy, Run


@dataclass(frozen=True, slots=True)
class Segment:
    """The new tokens of one context. `cached` tokens come before them; `runs` are the slots of
    these and of the new ones, in the order of the context."""

    ids: Sequence[int]
    cached: int
    runs: tuple[Run, ...]

    @property
    def length(self) -> int:
        """Tokens of the context with the new ones."""
        return self.cached + len(self.ids)

    def token(self, index: int) -> Segment:
        """One of the new tokens by itself; those before it count as cached."""
        cached = self.cached + index
        runs, left = [], cached + 1
        for first, length in self.runs:
            if left > 0:
                runs.append(Run(first, min(length, left)))
            left -= length
        return Segment(self.ids[index : index + 1], cached, tuple(runs))

    def new_slots(self) -> Iterator[int]:
        """Where the new tokens' keys and values are to lie."""
        skip = self.cached
        for first, length in self.runs:
            yield from range(first + min(skip, length), first + length)
            skip = max(0, skip - length)


@dataclass(frozen=True, slots=True)
class Pack:
    """The segments lie behind each other in one row of tokens, then `padding` tokens that nobody
    sees, at position `padding_position`. The logits are those after the tokens at `rows`. The
    copies are made first, in their order."""

    segments: tuple[Segment, ...]
    rows: tuple[int, ...]
    copies: tuple[Copy, ...] = ()
    padding: int = 0
    padding_position: int = 0

    def ids(self) -> list[int]:
        """Of the whole row."""
        ids = [token_id for segment in self.segments for token_id in segment.ids]
        return ids + [0] * self.padding

    def positions(self) -> list[int]:
        """Of the whole row, each in its context."""
        positions = [
            position
            for segment in self.segments
            for position in range(segment.cached, segment.length)
        ]
        return positions + [self.padding_position] * self.padding

    def slots(self) -> list[int]:
        """Of all new tokens, without padding."""
        return [slot for segment in self.segments for slot in segment.new_slots()]

    def to_ints(self) -> list[int]:
        """The same for `from_ints`: lengths come before what they are lengths of."""
        ints = [self.padding, self.padding_position, len(self.rows), *self.rows, len(self.copies)]
        for copy in self.copies:
            ints += copy
        ints.append(len(self.segments))
        for segment in self.segments:
            ints += [segment.cached, len(segment.ids), *segment.ids, len(segment.runs)]
            for run in segment.runs:
                ints += run
        return ints

    @classmethod
    def from_ints(cls, ints: Sequence[int]) -> Pack:
        """What `to_ints` was made from."""
        reader = _Reader(ints)
        padding, position = reader.next(), reader.next()
        rows = reader.some(reader.next())
        copies = tuple(Copy(*reader.some(3)) for _ in range(reader.next()))
        segments = tuple(_segment(reader) for _ in range(reader.next()))
        return cls(segments, rows, copies, padding, position)


class _Reader:
    def __init__(self, ints: Sequence[int]) -> None:
        self._ints = ints
        self._at = 0

    def next(self) -> int:
        return self.some(1)[0]

    def some(self, count: int) -> tuple[int, ...]:
        self._at += count
        return tuple(self._ints[self._at - count : self._at])


def _segment(reader: _Reader) -> Segment:
    cached = reader.next()
    ids = reader.some(reader.next())
    return Segment(ids, cached, tuple(Run(*reader.some(2)) for _ in range(reader.next())))
