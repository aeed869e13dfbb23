"""Where an answer stands, in bytes: what the noise of the next token is keyed by. Knows one
vocabulary and the committed ids of one answer."""

from __future__ import annotations

from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.decoding import NoisePosition


class AnswerPosition:
    """Grows with the answer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._end = NoisePosition()

    def commit(self, token_id: int) -> None:
        """The answer goes on with this id."""
        self._end = self._end.after(self._vocabulary.piece(token_id))

    def back(self, held_bytes: int) -> NoisePosition:
        """The position so many bytes before the end, 0 if that lies in the prompt."""
        if not held_bytes:
            return self._end
        return NoisePosition(max(0, self._end.offset - held_bytes))
