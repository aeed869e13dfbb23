"""The look-behind: how far back an encoding must start so that what comes out is the whole text's.

Knows one side's token ends and its vocabulary. It must not know the other side or a session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

from orchestrator.conversion.spans import Spans
from orchestrator.conversion.utf8 import is_boundary
from orchestrator.conversion.vocabulary import Vocabulary

# The nearest look-behind that is tried, the one from which on any proven cut will do, and the one
# at which the search ends, with a result that may not be canonical. In tokens.
NEAREST = 2
RELAXED = 16
FURTHEST = 64
# Of a lossy vocabulary, in bytes: it may have one id, or none at all, for any number of them.
FURTHEST_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Window:
    """Where to begin: at token `first`, byte `start`; `capped` where no exact cut was near."""

    first: int
    start: int
    capped: bool


@dataclass(slots=True)
class Side:
    """The tokens of one side and the byte end of each.

    The present segment, after the last control token, begins with token `floor` at byte `start`.
    """

    vocabulary: Vocabulary
    ids: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    floor: int = 0
    start: int = 0

    def start_of(self, token: int) -> int:
        """The byte at which a token of the present segment begins."""
        return self.ends[token - 1] if token > self.floor else self.start

    def push(self, token_id: int, end: int) -> None:
        """Appends a token that ends at a byte."""
        self.ids.append(token_id)
        self.ends.append(end)

    def extend(self, tokens: Spans, start: int) -> None:
        """Appends tokens, the first of which begins at a byte."""
        self.ids += tokens.ids
        self.ends += (start + end for end in accumulate(tokens.widths))

    def drop(self, first: int) -> None:
        """Takes away all tokens from one on."""
        del self.ids[first:]
        del self.ends[first:]

    def part(self, at: int) -> None:
        """Begins a new segment at a byte, after all tokens."""
        self.floor, self.start = len(self.ids), at


def window_start(side: Side, data: bytes | bytearray) -> Window:
    """The window over the end of the side's tokens; `data` holds the bytes that they stand for."""
    count = len(side.ends)
    for token in range(count - NEAREST, side.floor, -1):
        start = side.ends[token - 1]
        if start == side.start_of(token - 1):
            # Several ids stand for one byte: they cannot be parted.
            continue
        if _is_cut(side, data, token, relaxed=count - token >= RELAXED):
            return Window(token, start, capped=False)
        if count - token >= FURTHEST and is_boundary(data, start):
            return Window(token, start, capped=True)
    return Window(side.floor, side.start, capped=False)


def _is_cut(side: Side, data: bytes | bytearray, token: int, *, relaxed: bool) -> bool:
    start = side.ends[token - 1]
    if side.vocabulary.lossy:
        return start < side.ends[token] and side.ids[token] not in side.vocabulary.continuations
    cuts = side.vocabulary.cuts
    if start >= len(data):
        return False
    if cuts.at_space(data, start):
        return True
    return relaxed and is_boundary(data, start) and cuts.within_text(data, start)
