"""Shows answers as they grow, their tokens coloured by who said them first. Knows a screen."""

from __future__ import annotations

from orchestrator.cli.terminal import GREEN, Screen
from orchestrator.client import Delta, TokenSource

LEGEND = "(green: the draft said it and the target agreed; the rest: the target's own)"


class AnswerPrinter:
    """Writes the deltas of a request. Of several answers the first is shown as it grows and the
    others after it, each under its number."""

    def __init__(self, screen: Screen, answers: int = 1) -> None:
        self._screen = screen
        self._answers = answers
        self._later: dict[int, list[Delta]] = {index: [] for index in range(1, answers)}
        self._last = "\n"
        self._begun = False

    def show(self, delta: Delta) -> None:
        if not self._begun:
            self._begun = True
            self._headline(0)
        if delta.choice:
            self._later.setdefault(delta.choice, []).append(delta)
        else:
            self._write(delta)

    def end(self) -> None:
        """Shows what was held back, and ends the last line."""
        self._end_line()
        for choice, deltas in sorted(self._later.items()) if self._begun else ():
            self._screen.write("\n")
            self._headline(choice)
            for delta in deltas:
                self._write(delta)
            self._end_line()

    def _headline(self, choice: int) -> None:
        if self._answers > 1:
            self._screen.line(f"--- answer {choice + 1} of {self._answers}")

    def _write(self, delta: Delta) -> None:
        for token in delta.tokens:
            self._screen.write(token.text, GREEN if token.source is TokenSource.DRAFT else "")
        self._last = delta.text[-1:] or self._last

    def _end_line(self) -> None:
        if self._last != "\n":
            self._screen.write("\n")
            self._last = "\n"
