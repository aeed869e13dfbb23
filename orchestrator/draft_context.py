"""The draft's context: all of the mirrored text, or what of it the draft can hold. Pure.

A text that outgrows the context is followed with its end alone: what the draft's tokenizer puts
before any text stays at the front, and behind it comes the last part of the text, half of what
there is room for, so that the next such step is far off. The conversion goes on mirroring all of
the text; only here it is known that some of it is left out. Knows one conversion and one limit. It
must not know sessions or rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.conversion.conversion import Conversion, Proposal
from orchestrator.conversion.utf8 import is_continuation
from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition

LEAST_SLIDING = 16
"""Tokens of text that a context must hold to be worth following a text with its end alone."""


@dataclass(frozen=True, slots=True)
class ContextUpdate:
    """What brings the draft's context in line with the committed text.

    The `kept` tokens of it stay, and `append` follows them; then there is room for `room` more, 0
    if the draft cannot follow any longer. `rollback` drafted tokens were not what came.
    """

    kept: ContextVersion
    append: tuple[int, ...]
    room: int
    rollback: int


class DraftContext:
    """Of one answer. The first sync of its conversion is done: what is mirrored is the prompt."""

    def __init__(
        self,
        conversion: Conversion,
        vocabulary: Vocabulary,
        limit: int,
        start_ids: Sequence[int],
    ) -> None:
        """`limit`: tokens that the draft's context holds; `start_ids`: what its tokenizer puts
        before any text."""
        self._conversion = conversion
        self._vocabulary = vocabulary
        self._limit = limit
        mirrored = conversion.draft_ids
        starts = tuple(mirrored[: len(start_ids)]) == tuple(start_ids)
        # Of the mirrored ids those from `_head` to `_first` are left out.
        self._head = self._first = len(start_ids) if starts else 0
        self._answer_start = len(mirrored)

    @property
    def ids(self) -> Sequence[int]:
        """The context after the last sync; not to be changed."""
        mirrored = self._conversion.draft_ids
        if self._first == self._head:
            return mirrored
        return (*mirrored[: self._head], *mirrored[self._first :])

    @property
    def answer_start(self) -> int:
        """Where in the context the answer begins, or would if that were not left out."""
        start = min(self._answer_start, len(self._conversion.draft_ids))
        return start if start <= self._head else max(self._head, start - self._left_out)

    @property
    def position(self) -> NoisePosition:
        """Where in the answer the draft goes on after the last sync."""
        return self._conversion.position

    @property
    def may_go_on(self) -> bool:
        """As `Conversion.may_go_on`."""
        return self._conversion.may_go_on

    @property
    def problem(self) -> str:
        """Why the draft cannot follow a context that has no room."""
        return f"the draft's context of {self._limit} tokens is full, and too short to slide"

    def commit(self, target_ids: Sequence[int]) -> None:
        """The target has chosen these ids."""
        self._conversion.commit(target_ids)

    def sync(self, tokens: int) -> ContextUpdate:
        """What the draft has to drop and to read before it drafts so many tokens, or as many as
        there is room for. `room` is `tokens` at most."""
        update = self._conversion.sync()
        keep, append = update.keep - self._left_out, update.append
        if self._must_slide(tokens) or update.keep < self._first:
            self._slide()
            keep, append = self._head, tuple(self._conversion.draft_ids[self._first :])
        room = max(0, min(tokens, self._limit - self._length))
        return ContextUpdate(ContextVersion.of(self.ids, keep), append, room, update.rollback)

    def propose(self, draft_ids: Sequence[int]) -> Proposal:
        """Candidates for the target from what the draft proposes after the last sync."""
        return self._conversion.propose(draft_ids)

    @property
    def _left_out(self) -> int:
        return self._first - self._head

    @property
    def _length(self) -> int:
        return len(self._conversion.draft_ids) - self._left_out

    @property
    def _space(self) -> int:
        """What the context holds of a text."""
        return self._limit - self._head

    def _must_slide(self, tokens: int) -> bool:
        """Whether there is no room for the tokens. Of a context that is small beside what a round
        drafts a quarter will do: it would slide in every round."""
        needed = min(tokens, max(1, self._space // 4))
        return self._space >= LEAST_SLIDING and self._length + needed > self._limit

    def _slide(self) -> None:
        ids, half = self._conversion.draft_ids, self._space // 2
        earliest = max(self._head, len(ids) - half)
        places = range(earliest, min(earliest + half // 4, len(ids)))
        self._first = max(places, key=self._fitness, default=earliest)

    def _fitness(self, place: int) -> int:
        """How well a text may begin with the id at that place: with a line or a turn, with a word,
        with a whole character, or not at all. Of equal places `max` takes the first."""
        if place == self._head:
            return 4
        ids = self._conversion.draft_ids
        before, piece = map(self._vocabulary.piece, ids[place - 1 : place + 1])
        if not before or not piece or before.endswith(b"\n"):
            return 3
        if piece[:1].isspace():
            return 2
        return int(
            not is_continuation(piece[0]) and ids[place] not in self._vocabulary.continuations
        )
