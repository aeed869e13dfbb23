"""How far a benchmark is, on standard error. Knows rich, no service."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from orchestrator.bench.plan import Turn

SECONDS_BETWEEN_LINES = 30.0


def told(turns: Sequence[Turn], title: str) -> Iterator[Turn]:
    """The turns; a bar on a terminal, elsewhere a line at the start and every half minute."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        yield from _with_bar(turns, title, console)
    else:
        yield from _with_lines(turns, title, console)


def _with_bar(turns: Sequence[Turn], title: str, console: Console) -> Iterator[Turn]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=len(turns))
        for turn in turns:
            bar.update(task, description=f"{title}: {turn.prompt.id}, {turn.way.value}")
            yield turn
            bar.advance(task)


def _with_lines(turns: Sequence[Turn], title: str, console: Console) -> Iterator[Turn]:
    last = -SECONDS_BETWEEN_LINES
    for number, turn in enumerate(turns):
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            told = f"{title}: {number} of {len(turns)} requests"
            console.print(told, markup=False, soft_wrap=True)
        yield turn
