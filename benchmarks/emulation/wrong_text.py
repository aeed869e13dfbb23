"""What a draft may say in place of a token of the target: other text of as many bytes.

The target's tokenizer must part the text in front of it as if the right token followed, or the
candidates before the wrong one would be wrong too. Knows one vocabulary, no model.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary

BEFORE = 24
"""Tokens whose text is encoded with the wrong one, to see that they stay."""
TRIES = 300


class WrongText:
    """Finds other text for the tokens of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._by_shape: dict[tuple[int, str], list[bytes]] = defaultdict(list)
        for piece in vocabulary.pieces:
            if piece and _is_text(piece):
                self._by_shape[len(piece), _shape(piece)].append(piece)

    def of(self, spelled: Sequence[bytes], at: int) -> bytes | None:
        """In place of the token at that index of an answer; None if none is found."""
        right = spelled[at]
        if not _is_text(b"".join(spelled[:at])) or not _is_text(right):
            return None
        pieces = self._by_shape[len(right), _shape(right)]
        dice = random.Random(at)  # noqa: S311 - the same each time
        for piece in dice.sample(pieces, min(TRIES, len(pieces))):
            if piece != right and self._keeps(spelled, at, piece):
                return piece
        return None

    def _keeps(self, spelled: Sequence[bytes], at: int, piece: bytes) -> bool:
        """Whether it is a token of its own after the text before it, whether right text, or none,
        follows."""
        before = list(spelled[max(0, at - BEFORE) : at])
        kept = spans(self._vocabulary, b"".join(before)).widths
        after = spelled[at + 1 : at + 4]
        return all(
            spans(self._vocabulary, b"".join((*before, piece, *more))).widths[: len(kept) + 1]
            == [*kept, len(piece)]
            for more in ((), after[:1], after)
        )


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shape(piece: bytes) -> str:
    """Words stay words, whether a space is before them or not, so that the text looks like one."""
    text = piece.decode()
    bare = text.removeprefix(" ")
    kind = "word" if bare.isalpha() else "blank" if not bare.strip() else "other"
    return f"{'space ' if bare != text else ''}{kind}"
