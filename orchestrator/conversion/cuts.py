"""Where a text may be cut so that both parts encode as they do together.

Knows the pieces of one vocabulary. It must not know sides, sessions or token positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.conversion.utf8 import character_at, character_before

SPACE = 0x20


@dataclass(frozen=True, slots=True)
class Cuts:
    """What decides whether a position in a text is a cut.

    Merges build a token pair by pair, so one that lies across a position has, somewhere in its
    making, joined a piece that ends there with one that begins there. Pieces that are found as a
    whole before any merge are looked for as such: `matched` has their ends by their beginnings.
    """

    pieces: frozenset[bytes]
    matched: Mapping[bytes, tuple[bytes, ...]]
    reach: int
    merges: bool
    inside_words_only: bool
    space_inside_piece: bool

    def at_space(self, data: bytes | bytearray, position: int) -> bool:
        """Whether a space after a non-space begins here, and nothing joins the two."""
        if position == 0 or data[position] != SPACE or character_before(data, position).isspace():
            return False
        return not self.space_inside_piece or self._nothing_across(data, position)

    def within_text(self, data: bytes | bytearray, position: int) -> bool:
        """Whether no piece can lie across this character boundary, whatever text may follow.

        Where the tokenizer cuts words out by a rule before it merges, only the inside of a run of
        letters is known to be untouched by the rule.
        """
        if not self.merges or position == 0 or position + self.reach > len(data):
            return False
        if self.inside_words_only and not (
            character_before(data, position).isalpha() and character_at(data, position).isalpha()
        ):
            return False
        return self._nothing_across(data, position)

    def _nothing_across(self, data: bytes | bytearray, position: int) -> bool:
        before = bytes(data[max(0, position - self.reach) : position])
        after = bytes(data[position : position + self.reach])
        lefts = [before[start:] for start in range(len(before))]
        if any(after.startswith(self.matched[left]) for left in lefts if left in self.matched):
            return False
        rights = [after[:end] for end in range(1, len(after) + 1)]
        known = [right for right in rights if right in self.pieces]
        return not any(
            left + right in self.pieces for left in lefts if left in self.pieces for right in known
        )


def cuts(
    pieces: Sequence[bytes], matched: Iterable[bytes], *, merges: bool, pre_tokens: bool
) -> Cuts:
    """The cuts of a vocabulary whose text pieces are these; `matched` are found before merging."""
    ends_by_beginning: defaultdict[bytes, tuple[bytes, ...]] = defaultdict(tuple)
    for piece in matched:
        for at in range(1, len(piece)):
            ends_by_beginning[piece[:at]] += (piece[at:],)
    across = [piece for piece in pieces if _inside_word(piece)] if pre_tokens else pieces
    return Cuts(
        pieces=frozenset(pieces),
        matched=dict(ends_by_beginning),
        reach=max(map(len, across), default=0),
        merges=merges,
        inside_words_only=pre_tokens,
        space_inside_piece=any(map(_space_inside, pieces)),
    )


def _inside_word(piece: bytes) -> bool:
    """Whether the piece may be a run of letters, or one with a single character before it."""
    text = piece.decode("utf-8", "replace").replace("\ufffd", "")
    return len(text) < 2 or text[1:].isalpha()


def _space_inside(piece: bytes) -> bool:
    at = piece.find(b" ", 1)
    while at != -1:
        if not character_before(piece, at).isspace():
            return True
        at = piece.find(b" ", at + 1)
    return False
