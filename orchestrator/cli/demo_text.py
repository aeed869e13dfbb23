"""The texts of `uag demo`. Pure: facts in, lines out."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from orchestrator.cli import figures
from orchestrator.cli.examples import call_examples
from orchestrator.cli.needs import Needs, Supply, gigabytes
from orchestrator.cli.services import DEFAULT_PAIR, ORCHESTRATOR_ADDRESS, Pair
from orchestrator.cli.table import columns
from orchestrator.client import Finished
from uag_common.models import catalogue


def needs_lines(pair: Pair, needed: Needs, here: Supply) -> list[str]:
    """What is needed beside what is there."""
    download = gigabytes(needed.download) if needed.download else "nothing, all is here"
    rows = [
        ("target", pair.target, "decides every token"),
        ("draft", pair.draft, "guesses ahead"),
        ("download", download, "once"),
        ("disk", gigabytes(needed.disk) + " more", f"{gigabytes(here.disk)} free in {here.cache}"),
        ("memory", gigabytes(needed.memory), f"{gigabytes(here.memory)} free"),
    ]
    lines = columns(rows)
    if needed.unknown:
        lines.append(f"not counted until they are fetched: {', '.join(needed.unknown)}")
    return lines


def model_line(name: str) -> str:
    """The model, its licence if it is a packaged one."""
    if name not in catalogue.names():
        return name
    model = catalogue.find(name)
    return f"{name} ({model.licence})"


def figure_lines(finished: Finished) -> list[str]:
    """The figures of an answer, from one line to where its time went."""
    lines = [
        figures.summary(finished),
        figures.acceptance(finished),
        figures.time_split(finished.time),
    ]
    lost = figures.degradation(finished)
    return lines if lost is None else [*lines, lost]


def next_lines(pair: Pair) -> list[str]:
    """The services have ended; how to have them again, call them, and what else there is."""
    others = columns(
        [
            ("uag demo --reverse", "the two models change places"),
            ("uag demo --dtype bfloat16", "less memory and time; near-ties may flip"),
            ("uag models check DRAFT TARGET", "whether two models of yours make a pair"),
            ("make test", "all checks and tests"),
        ]
    )
    found = shutil.which("uag") is not None
    return [
        *([] if found else [f". {Path(sys.prefix) / 'bin' / 'activate'}    finds `uag` and `buf`"]),
        f"{_up(pair)}    runs the services until Ctrl-C; then, in another terminal:",
        *(f"  {line}" for line in call_examples(ORCHESTRATOR_ADDRESS)),
        *others,
    ]


def _up(pair: Pair) -> str:
    words = ["uag", "up"]
    if pair.target != DEFAULT_PAIR.target:
        words += ["--target", pair.target]
    if pair.draft != DEFAULT_PAIR.draft:
        words += ["--draft", pair.draft]
    return shlex.join(words)
