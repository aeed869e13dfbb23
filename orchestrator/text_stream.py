"""Committed ids to streamed text. Knows one vocabulary and where a text starts, nothing of rounds.

Whole characters only: U+FFFD stands for bytes that are provably bad, never for a character that
is merely unfinished.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.conversion.utf8 import utf8_end
from orchestrator.conversion.vocabulary import Vocabulary


class TextStream:
    """The text of one answer, as it grows.

    `at_text_start` says that the ids begin a text rather than go on with one; only there a family
    that puts a space before a text has it taken off again.
    """

    def __init__(self, vocabulary: Vocabulary, *, at_text_start: bool) -> None:
        self._vocabulary = vocabulary
        self._unfinished = b""
        self._strip_space = at_text_start and vocabulary.strips_leading_space

    def push(self, ids: Sequence[int]) -> str:
        """The text that is complete now that these ids are committed; it may be empty."""
        data = b"".join(self._vocabulary.piece(token_id) or b"" for token_id in ids)
        if self._strip_space and data:
            data = data.removeprefix(b" ")
            self._strip_space = False
        data = self._unfinished + data
        end = utf8_end(data)
        self._unfinished = data[end:]
        return data[:end].decode("utf-8", "replace")

    def flush(self) -> str:
        """What is left at the end: U+FFFD for a character that was never finished, or nothing."""
        rest, self._unfinished = self._unfinished, b""
        return rest.decode("utf-8", "replace")
