"""What torch.compile makes of a draft's steps: `python -m benchmarks.draft_steps [MODEL]`.

The model is loaded twice in one process, as it is and with UAG_DRAFT_COMPILE=true. The two take
turns at the same steps: a token for one session, a token for each of four, and five tokens for one
as after a verification. Told is how many times as long a step takes without, and what compiling
took.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.progress import track

from draft_service.settings import DraftSettings
from orchestrator.cli.services import DEFAULT_PAIR
from uag_common.engine.load import load_model
from uag_common.model import Model, Part, TokenSequence

CONTEXT = 128
"""Tokens before the first step."""


@dataclass(frozen=True, slots=True)
class Work:
    """A step of so many sessions, with so many new tokens each."""

    sessions: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.sessions} x {self.tokens}"


WORKS = (Work(1, 1), Work(4, 1), Work(1, 5))


class Sessions:
    """Those of one model, which get the same random tokens as those of another."""

    def __init__(self, model: Model, work: Work) -> None:
        self._model = model
        self._work = work
        self._dice = random.Random(0)  # noqa: S311 - nothing is to be kept secret
        self._sequences = [model.new_sequence() for _ in range(work.sessions)]
        self._run(CONTEXT)

    def step_seconds(self) -> float:
        began = time.perf_counter()
        self._run(self._work.tokens)
        return time.perf_counter() - began

    def end(self) -> None:
        for sequence in self._sequences:
            sequence.drop_cache()

    def _run(self, tokens: int) -> None:
        self._model.run([self._part(sequence, tokens) for sequence in self._sequences])

    def _part(self, sequence: TokenSequence, tokens: int) -> Part:
        size = self._model.description.vocabulary_size
        sequence.extend([self._dice.randrange(size) for _ in range(tokens)])
        return Part(sequence, sequence.pending(1), 1)


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of the same step, as it is and compiled."""

    plain: float
    compiled: float

    @property
    def ratio(self) -> float:
        return self.plain / self.compiled


def measure(plain: Model, compiled: Model, work: Work, steps: int) -> list[Pair]:
    """They take turns at being first; the first step of each warms up."""
    one, other = Sessions(plain, work), Sessions(compiled, work)
    found = []
    for step in track(range(steps + 1), str(work)):
        first, second = (one, other) if step % 2 else (other, one)
        seconds = {first: first.step_seconds(), second: second.step_seconds()}
        if step:
            found.append(Pair(seconds[one], seconds[other]))
    one.end()
    other.end()
    return found


def table(found: dict[Work, list[Pair]]) -> Iterator[str]:
    """In Markdown."""
    yield "| sessions x tokens | as it is, ms | compiled, ms | times as fast (quartiles) |"
    yield "|---|---|---|---|"
    for work, pairs in found.items():
        low, middle, high = statistics.quantiles((pair.ratio for pair in pairs), n=4)
        plain = statistics.median(pair.plain for pair in pairs)
        compiled = statistics.median(pair.compiled for pair in pairs)
        yield (
            f"| {work} | {1000 * plain:.1f} | {1000 * compiled:.1f} "
            f"| {middle:.2f} ({low:.2f} to {high:.2f}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", default=DEFAULT_PAIR.draft)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--steps", type=int, default=60)
    flags = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    settings = DraftSettings(model=flags.model, dtype=flags.dtype)
    plain = load_model(settings)
    began = time.perf_counter()
    compiled = load_model(replace(settings, compile=True), compiled=True)
    took = time.perf_counter() - began
    found = {work: measure(plain, compiled, work, flags.steps) for work in WORKS}
    sys.stdout.write(
        f"{flags.model}, {flags.dtype}, context {CONTEXT}, {os.cpu_count()} cores; to load and "
        f"compile it took {took:.0f} s:\n\n" + "\n".join(table(found)) + "\n"
    )


if __name__ == "__main__":
    main()
