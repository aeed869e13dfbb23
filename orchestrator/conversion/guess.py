"""What a draft's ids say, up to where they stop to spell text. Knows the draft's vocabulary."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.conversion.conversion import Stop
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.conversion.word_spelling import WordSpelling


@dataclass(frozen=True, slots=True)
class Guess:
    """The bytes of `count` draft ids up to a stop, and the end of each of these ids in them."""

    data: bytes
    ends: tuple[int, ...]
    stop: Stop | None
    count: int

    @classmethod
    def read(cls, vocabulary: Vocabulary, draft_ids: Sequence[int], before: bytes) -> Guess:
        """Reads ids; a stop is an EOS by role, a control token, or an id without a token. `before`:
        the end of the text that they go on with, by which a lossy vocabulary's words are spelled.
        """
        spell = WordSpelling(vocabulary, before).spell if vocabulary.lossy else vocabulary.piece
        data, ends = bytearray(), list[int]()
        stop: Stop | None = None
        for token_id in draft_ids:
            stop = _stop(vocabulary, token_id)
            if stop is not None:
                break
            data += spell(token_id) or b""
            ends.append(len(data))
        return cls(bytes(data), tuple(ends), stop, len(draft_ids))

    def lost_after(self, end: int) -> int:
        """How many of the ids do not lie wholly before that byte."""
        return self.count - bisect_right(self.ends, end)


def _stop(vocabulary: Vocabulary, token_id: int) -> Stop | None:
    if token_id in vocabulary.roles.eos:
        return Stop.EOS
    if vocabulary.piece(token_id) is not None:
        return None
    return Stop.CONTROL if vocabulary.is_control(token_id) else Stop.UNKNOWN_ID
