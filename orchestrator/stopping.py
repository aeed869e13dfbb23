"""Where an answer ends by what it says, and which of its text may be shown. Pure.

Knows the answer's ids one after another. It must not know rounds, limits or time: whoever drives it
says when those are over.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from orchestrator.stop_search import StopSearch
from orchestrator.text_stream import TextStream


@dataclass(frozen=True, slots=True)
class Stopping:
    """What ends an answer, as `uag.orchestrator.v1.StoppingOptions` explains it.

    `eos_ids` is empty where an EOS ends nothing. None of `sequences` is empty. That EOS and stop
    ids are not chosen before `min_new_tokens` is the target's part.
    """

    eos_ids: frozenset[int]
    stop_token_ids: frozenset[int]
    sequences: tuple[str, ...]
    include_stop: bool
    min_new_tokens: int


@dataclass(frozen=True, slots=True)
class EosStop:
    """The target chose one of its EOS ids."""

    token_id: int


@dataclass(frozen=True, slots=True)
class TokenStop:
    """The target chose one of the stop ids, which is no EOS."""

    token_id: int


@dataclass(frozen=True, slots=True)
class SequenceStop:
    """The text has this stop sequence."""

    sequence: str


Stop = EosStop | TokenStop | SequenceStop


class AnswerText:
    """The text of one answer, token by token, up to where it ends.

    The match of a stop sequence that ends first ends the answer, however its text is cut into
    tokens. Text that may yet become a part of a match is held back, and the tokens after it with
    it; `include_stop` shows the match, so there nothing waits. U+FFFD for a character that the end
    of the answer cuts off belongs to the last token and to no match.
    """

    def __init__(self, text: TextStream, stopping: Stopping) -> None:
        self._text = text
        self._stopping = stopping
        self._search = StopSearch(stopping.sequences)
        self._tokens = 0
        self._length = 0
        self._final = 0
        self._waiting: deque[_TokenText] = deque()

    def push(self, token_id: int) -> Stop | None:
        """The next token is committed: how it ends the answer, if it does. It is the last then."""
        self._tokens += 1
        stop = self._stop_by_id(token_id)
        if stop is not None:
            self._append(self._text.push((token_id,)) if self._stopping.include_stop else "")
            self.finish()
            return stop
        begin, text = self._length, self._text.push((token_id,))
        self._append(text)
        if self._tokens < self._stopping.min_new_tokens:
            self._search.skip(text)
        elif match := self._search.find(text):
            hidden = 0 if self._stopping.include_stop else len(match.sequence)
            self._cut(begin + match.end - hidden)
            return SequenceStop(match.sequence)
        self._final = self._length - (0 if self._stopping.include_stop else self._search.growing)
        return None

    def release(self) -> tuple[str, ...]:
        """The texts of the next tokens, in order, that will be shown whatever follows."""
        released: list[str] = []
        while self._waiting and self._waiting[0].end <= self._final:
            released.append(self._waiting.popleft().text)
        return tuple(released)

    def finish(self) -> None:
        """The answer is over: all that is held back will be shown. Changes nothing after a stop.

        A character that was never finished is shown as U+FFFD, unless its last token has been
        released without it.
        """
        rest = self._text.flush()
        if self._waiting:
            last = self._waiting.pop()
            self._length -= len(last.text)
            self._append(last.text + rest)
        self._final = self._length

    def _stop_by_id(self, token_id: int) -> Stop | None:
        if token_id in self._stopping.eos_ids:
            return EosStop(token_id)
        return TokenStop(token_id) if token_id in self._stopping.stop_token_ids else None

    def _append(self, text: str) -> None:
        self._length += len(text)
        self._waiting.append(_TokenText(text, self._length))

    def _cut(self, end: int) -> None:
        """The text ends here; what was to become of the rest is forgotten."""
        self._text.flush()
        self._waiting = deque(token.cut(end) for token in self._waiting)
        self._length = self._final = end


@dataclass(frozen=True, slots=True)
class _TokenText:
    """A token's text and where in the answer it ends."""

    text: str
    end: int

    def cut(self, end: int) -> _TokenText:
        """What of it lies before `end`."""
        if self.end <= end:
            return self
        return _TokenText(self.text[: max(0, len(self.text) - (self.end - end))], end)
