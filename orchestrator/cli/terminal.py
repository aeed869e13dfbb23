"""What a stream can show: colours on a terminal, plain text elsewhere. Knows no answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

GREEN = "\x1b[32m"
RESET = "\x1b[0m"

# A terminal obeys these; a model (or a log) must not be able to give it orders.
_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


@dataclass(frozen=True, slots=True)
class Screen:
    """A text stream; `coloured` only on a terminal, and only if NO_COLOR is not set."""

    stream: TextIO
    is_terminal: bool
    coloured: bool

    @classmethod
    def of(cls, stream: TextIO, environ: Mapping[str, str] = os.environ) -> Screen:
        """By the stream and by NO_COLOR and TERM."""
        is_terminal = stream.isatty()
        plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        return cls(stream, is_terminal, is_terminal and not plain)

    def write(self, text: str, colour: str = "") -> None:
        """At once. Outside a terminal every character passes as it is."""
        if self.is_terminal:
            text = text.translate(_CONTROLS)
        if self.coloured and colour and text:
            text = f"{colour}{text}{RESET}"
        self.stream.write(text)
        self.stream.flush()

    def line(self, text: str = "") -> None:
        self.write(text + "\n")
