"""Masks as sets of ids, answers from a set of texts as the reference, and short constraints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from uag_common.constraint.matcher import Grammars, TokenMatcher
from uag_common.decoding import Constraint, ConstraintKind

_BITS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def schema(value: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, (json.dumps(value),))


def regex(text: str) -> Constraint:
    return Constraint(ConstraintKind.REGEX, (text,))


def choice(*texts: str) -> Constraint:
    return Constraint(ConstraintKind.CHOICE, texts)


def grammar(text: str) -> Constraint:
    return Constraint(ConstraintKind.GRAMMAR, (text,))


def ids(mask: bytes | None) -> set[int]:
    """The ids whose bits are set."""
    assert mask is not None
    return {8 * at + bit for at, byte in enumerate(mask) if byte for bit in _BITS[byte]}


def has(mask: bytes | None, token_id: int) -> bool:
    """Whether the bit of an id is set."""
    assert mask is not None
    return bool(mask[token_id >> 3] >> (token_id & 7) & 1)


def after(grammars: Grammars, constraint: Constraint, answer: Iterable[int]) -> TokenMatcher:
    """A matcher behind the tokens of an answer."""
    matcher = grammars.matcher(constraint)
    for token_id in answer:
        matcher.advance(token_id)
    return matcher


class Reference:
    """What may come next where the allowed texts are these and no others."""

    def __init__(
        self, texts: Iterable[bytes], pieces: Sequence[bytes | None], eos_ids: Sequence[int]
    ) -> None:
        self._texts = frozenset(texts)
        self._beginnings = {text[:end] for text in self._texts for end in range(len(text) + 1)}
        self._pieces = pieces
        self._eos_ids = set(eos_ids)

    def allowed(self, answer: Sequence[int]) -> set[int]:
        """The ids after which a text can still be reached, and the EOS ids at the end of one."""
        so_far = self.spelled(answer)
        going_on = {
            at
            for at, piece in enumerate(self._pieces)
            if piece and at not in self._eos_ids and so_far + piece in self._beginnings
        }
        return going_on | (self._eos_ids if so_far in self._texts else set())

    def answers(self, most: int) -> Iterator[list[int]]:
        """Every beginning of an answer, of up to `most` tokens, in every spelling."""
        level: list[list[int]] = [[]]
        for _ in range(most + 1):
            yield from level
            level = [
                [*answer, token_id]
                for answer in level
                for token_id in sorted(self.allowed(answer) - self._eos_ids)
            ]

    def spelled(self, answer: Sequence[int]) -> bytes:
        """The bytes of the tokens."""
        return b"".join(self._pieces[at] or b"" for at in answer)
