"""What a setting makes of a model's steps: `python -m benchmarks.model_steps prepack [MODEL]`.

The model is loaded twice in one process, with the setting (`prepack`, or `compile` as a draft has
it) and without. The two take turns at the same steps: a token for one session, a token and some
candidates, a token for each of four. Told is how many times as long a step takes without, and how
long the model took to load.
"""

from __future__ import annotations

import argparse
import logging
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


WORKS = (Work(1, 1), Work(1, 2), Work(1, 4), Work(1, 6), Work(1, 11), Work(1, 25), Work(4, 1))


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
    """Seconds of the same step, without the setting and with it."""

    plain: float
    changed: float

    @property
    def ratio(self) -> float:
        return self.plain / self.changed


def measure(plain: Model, changed: Model, work: Work, steps: int) -> list[Pair]:
    """They take turns at being first; the first step of each warms up."""
    one, other = Sessions(plain, work), Sessions(changed, work)
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
    yield "| sessions x tokens | without, ms | with, ms | times as fast (quartiles) |"
    yield "|---|---|---|---|"
    for work, pairs in found.items():
        low, middle, high = statistics.quantiles((pair.ratio for pair in pairs), n=4)
        plain = statistics.median(pair.plain for pair in pairs)
        changed = statistics.median(pair.changed for pair in pairs)
        yield (
            f"| {work} | {1000 * plain:.1f} | {1000 * changed:.1f} "
            f"| {middle:.2f} ({low:.2f} to {high:.2f}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("setting", choices=("prepack", "compile"))
    parser.add_argument("model", nargs="?", default=DEFAULT_PAIR.draft)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    flags = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    compiled = flags.setting == "compile"
    settings = DraftSettings(model=flags.model, dtype=flags.dtype, threads=flags.threads)
    plain = load_model(settings if compiled else replace(settings, prepack=False))
    began = time.perf_counter()
    changed = load_model(replace(settings, compile=compiled), compiled=compiled)
    took = time.perf_counter() - began
    found = {work: measure(plain, changed, work, flags.steps) for work in WORKS}
    sys.stdout.write(
        f"{flags.setting}: {flags.model}, {flags.dtype}, context {CONTEXT}, threads "
        f"{flags.threads}; loaded in {took:.0f} s:\n\n" + "\n".join(table(found)) + "\n"
    )


if __name__ == "__main__":
    main()
