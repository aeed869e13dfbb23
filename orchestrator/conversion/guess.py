"""What a draft's ids say, up to where they stop to spell text. Knows the draft's vocabulary."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.conversion.conversion import Stop
from orchestrator.conversion.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Guess:
    """The bytes of `count` draft ids up to a stop, and the end of each of these ids in them."""

    data: bytes
    ends: tuple[int, ...]
    stop: Stop | None
    count: int

    @classmethod
    def read(cls, vocabulary: Vocabulary, draft_ids: Sequence[int]) -> Guess:
        """Reads ids; a stop is an EOS by role, a control token, or an id without a token."""
        data, ends = bytearray(), list[int]()
        stop: Stop | None = None
        for token_id in draft_ids:
            stop = _stop(vocabulary, token_id)
            if stop is not None:
                break
            data += vocabulary.piece(token_id) or b""
            ends.append(len(data))
        return cls(bytes(data), tuple(ends), stop, len(draft_ids))

    def without_space(self) -> Guess:
        """The same guess without the space that a lossy vocabulary puts before each word."""
        if not self.data.startswith(b" "):
            return self
        ends = tuple(end - 1 for end in self.ends)
        return Guess(self.data[1:], ends, self.stop, self.count)

    def lost_after(self, end: int) -> int:
        """How many of the ids do not lie wholly before that byte."""
        return self.count - bisect_right(self.ends, end)


def _stop(vocabulary: Vocabulary, token_id: int) -> Stop | None:
    if token_id in vocabulary.roles.eos:
        return Stop.EOS
    if vocabulary.piece(token_id) is not None:
        return None
    return Stop.CONTROL if vocabulary.is_control(token_id) else Stop.UNKNOWN_ID
