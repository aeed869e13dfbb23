"""Shows the model store's progress on standard error. Knows rich, must not know what is fetched.

On a terminal a bar with bytes, speed and time left; elsewhere plain lines, a few for each file.
rich honours NO_COLOR by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from uag_common.models.reports import Transfer

SECONDS_BETWEEN_LINES = 10.0


class TerminalProgress:
    """A `uag_common.models.reports.Progress` that writes to a console (default: standard error)."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def note(self, text: str) -> None:
        """One line."""
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def transfer(self, title: str, total_bytes: int) -> Iterator[Transfer]:
        """A bar, or a line at the start, at the end and every ten seconds."""
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            with _bar(self._console) as bar:
                yield _BarTransfer(bar, bar.add_task(title, total=total_bytes))
        else:
            lines = _LineTransfer(self, title, total_bytes)
            yield lines
            lines.finish()


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


@dataclass(slots=True)
class _BarTransfer:
    bar: Progress
    task: TaskID

    def reached(self, done_bytes: int) -> None:
        self.bar.update(self.task, completed=done_bytes)


@dataclass(slots=True)
class _LineTransfer:
    """Lines; the speed leaves out the bytes that an earlier run had fetched."""

    output: TerminalProgress
    title: str
    total_bytes: int
    started: float = field(default_factory=time.monotonic)
    first_bytes: int | None = None
    done_bytes: int = 0
    last_line: float = 0.0

    def reached(self, done_bytes: int) -> None:
        now = time.monotonic()
        self.done_bytes = done_bytes
        if self.first_bytes is None:
            self.first_bytes = done_bytes
            already = f", {decimal(done_bytes)} already here" if done_bytes else ""
            self.output.note(f"{self.title}: {decimal(self.total_bytes)}{already}")
            self.last_line = now
        elif now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.output.note(f"{self.title}: {decimal(done_bytes)} of {self._rate(now)}")
            self.last_line = now

    def finish(self) -> None:
        self.output.note(f"{self.title}: done, {self._rate(time.monotonic())}")

    def _rate(self, now: float) -> str:
        fetched = max(0, self.done_bytes - (self.first_bytes or 0))
        speed = int(fetched / max(now - self.started, 1e-3))
        return f"{decimal(self.total_bytes)}, {decimal(speed)}/s"
