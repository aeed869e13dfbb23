"""Shows an answer as it grows, its tokens coloured by who said them first. Knows a screen."""

from __future__ import annotations

from orchestrator.cli.terminal import GREEN, Screen
from orchestrator.events import Delta, TokenSource

LEGEND = "(green: the draft said it and the target agreed; the rest: the target's own)"


class AnswerPrinter:
    """Writes the deltas of one answer."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._last = "\n"

    def show(self, delta: Delta) -> None:
        for token in delta.tokens:
            self._screen.write(token.text, GREEN if token.source is TokenSource.DRAFT else "")
        self._last = delta.text[-1:] or self._last

    def end(self) -> None:
        """Ends the last line."""
        if self._last != "\n":
            self._screen.write("\n")
