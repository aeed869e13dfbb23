"""The texts that the miniatures know by heart, as ids of the vocabulary rows that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

TEXTS = (
    "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all, for it has "
    "seen the fox before.",
    "def add(left: int, right: int) -> int:\n    return left + right\n\n\n"
    "def negated(number: int) -> int:\n    return -number\n",
    "It rained for 40 days; on day 41 the sun came out, and everybody went to the sea.",
    "Wörter mit Umlauten, des mots accentués, и немного кириллицы, 日本語もすこし。",
)


@dataclass(frozen=True, slots=True)
class Lessons:
    """`rows`: the ids in use, ascending. `texts`: as indices into `rows`."""

    rows: tuple[int, ...]
    texts: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer, end: Sequence[int] = (), also: Sequence[int] = ()) -> Lessons:
        """Each text with what the tokenizer puts around it, and with `end` after it. `also`: rows
        that no text has."""
        texts = [[*tokenizer.encode(text).ids, *end] for text in TEXTS]
        rows = tuple(sorted({*also, *(row for text in texts for row in text)}))
        place: Mapping[int, int] = {row: index for index, row in enumerate(rows)}
        return cls(rows, tuple(tuple(place[row] for row in text) for text in texts))

    def place(self, row: int) -> int:
        """The index of an id in use."""
        return self.rows.index(row)
