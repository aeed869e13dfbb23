"""What came of an answer so far. Pure: events in, values out."""

from __future__ import annotations

from orchestrator.client.answer import Answer, Choice, Delta, Event, Finished, Started, Token
from orchestrator.client.errors import InternalError


class NotYetError(LookupError):
    """What is asked for has not come yet: read on."""


class Transcript:
    """Grows by the events of one request."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._deltas: dict[int, list[Delta]] = {}
        self._finished: dict[int, Finished] = {}

    @property
    def started(self) -> Started:
        """The request as resolved; comes before the first delta. Raises NotYetError."""
        if self._started is None:
            raise NotYetError("the answer has not begun")
        return self._started

    def text(self, choice: int = 0) -> str:
        """All that came of an answer so far. Raises IndexError if there is no such answer."""
        self._check(choice)
        return "".join(delta.text for delta in self._deltas.get(choice, ()))

    def tokens(self, choice: int = 0) -> tuple[Token, ...]:
        """All that came of an answer so far. Raises IndexError if there is no such answer."""
        self._check(choice)
        return tuple(token for delta in self._deltas.get(choice, ()) for token in delta.tokens)

    def finished(self, choice: int = 0) -> Finished:
        """The end of an answer. Raises NotYetError before it, IndexError if there is no such
        answer."""
        self._check(choice)
        if choice not in self._finished:
            raise NotYetError(f"answer {choice} has not ended")
        return self._finished[choice]

    def _check(self, choice: int) -> None:
        told = None if self._started is None else self._started.parameters.get("n")
        answers = max(told or 1, *(index + 1 for index in self._deltas | self._finished), 1)
        if not 0 <= choice < answers:
            raise IndexError(f"the request has {answers} answers, none has the index {choice}")

    def _add(self, event: Event | None) -> None:
        """None, an event that this client does not know, adds nothing."""
        match event:
            case Started():
                self._started = event
            case Delta():
                self._deltas.setdefault(event.choice, []).append(event)
            case Finished():
                self._finished[event.choice] = event

    def _whole(self) -> Answer:
        """Raises InternalError if the stream ended before every answer of it did."""
        if self._started is None or not self._finished or self._deltas.keys() - self._finished:
            raise InternalError("INTERNAL: the stream ended in the middle of the answer")
        return Answer(
            self._started,
            tuple(
                Choice(self.text(choice), self.tokens(choice), self._finished[choice])
                for choice in sorted(self._finished)
            ),
        )
