"""What the deterministic mode costs: `python -m benchmarks.deterministic [--model M] [--runs N]`.

One model, held twice: with passes as large as what waits, and with passes of a fixed size whose
numbers do not depend on what shares them. Both run the same contexts, in turns, in this process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from rich.progress import track

from orchestrator.cli.services import DEFAULT_PAIR
from uag_common.engine.language_model import LanguageModel
from uag_common.engine.load import load_folder
from uag_common.model import Part
from uag_common.models.source import resolve
from verify_service.settings import VerifySettings

CONTEXT = 256


@dataclass(frozen=True, slots=True)
class Work:
    """So many contexts, each with so many new tokens; behind `context` older ones."""

    name: str
    contexts: int
    tokens: int
    context: int = CONTEXT


WORKS = (
    Work("a plain step", 1, 1),
    Work("a verification of 5 candidates", 1, 6),
    Work("plain steps of 8 sessions", 8, 1),
    Work("verifications of 8 sessions", 8, 6),
    Work("plain steps of 16 sessions", 16, 1),
    Work("a prompt of 512 tokens", 1, 512, context=0),
)


def load(model: str, dtype: str, *, deterministic: bool) -> LanguageModel:
    folder = resolve(model)
    settings = VerifySettings(
        model=str(folder),
        dtype=dtype,  # type: ignore[arg-type]
        deterministic=deterministic,
        kv_cache="1GB",
    )
    return load_folder(folder, settings, torch.device("cpu"))


class Contexts:
    """The contexts of one kind of work on one model."""

    def __init__(self, model: LanguageModel, work: Work) -> None:
        self._model = model
        self._work = work
        self._sequences = [model.new_sequence() for _ in range(work.contexts)]
        for number, sequence in enumerate(self._sequences):
            sequence.extend(self._ids(7, number, work.context))
            if work.context:
                model.run([Part(sequence, work.context, 1)])

    def _ids(self, step: int, start: int, count: int) -> list[int]:
        size = self._model.description.vocabulary_size
        return [(step * n + start) % size for n in range(count)]

    def seconds(self) -> float:
        """Of one pass, or of as many as the model makes of it."""
        tokens = self._work.tokens
        for number, sequence in enumerate(self._sequences):
            sequence.extend(self._ids(11, number, tokens))
        rows = min(tokens, 6)
        parts = [Part(sequence, tokens, rows) for sequence in self._sequences]
        began = time.perf_counter()
        self._model.run(parts)
        took = time.perf_counter() - began
        for sequence in self._sequences:
            sequence.truncate(self._work.context)
        return took

    def end(self) -> None:
        for sequence in self._sequences:
            sequence.drop_cache()


def measure(models: Sequence[LanguageModel], work: Work, runs: int) -> list[tuple[float, ...]]:
    """Seconds of each model, in turns; the first run warms up and does not count."""
    contexts = [Contexts(model, work) for model in models]
    found = [tuple(each.seconds() for each in contexts) for _ in range(runs + 1)]
    for each in contexts:
        each.end()
    return found[1:]


def table(found: Sequence[tuple[Work, Sequence[tuple[float, ...]]]]) -> Iterator[str]:
    """In Markdown; times in milliseconds, the ratio with its quartiles."""
    yield "| | as it comes, ms | deterministic, ms | ratio (quartiles) |"
    yield "|---|---|---|---|"
    for work, pairs in found:
        free, fixed = (1000 * statistics.median(times) for times in zip(*pairs, strict=True))
        low, middle, high = statistics.quantiles((b / a for a, b in pairs), n=4)
        yield f"| {work.name} | {free:.0f} | {fixed:.0f} | {middle:.2f} ({low:.2f} to {high:.2f}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default=DEFAULT_PAIR.target)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--runs", type=int, default=9)
    flags = parser.parse_args()
    models = [load(flags.model, flags.dtype, deterministic=mode) for mode in (False, True)]
    found = [(work, measure(models, work, flags.runs)) for work in track(WORKS, "kinds of work")]
    sys.stdout.write(
        f"{flags.model}, {flags.dtype}, {CONTEXT} tokens of context, {torch.get_num_threads()} of "
        f"{os.cpu_count()} cores, {flags.runs} runs:\n\n"
    )
    sys.stdout.write("\n".join(table(found)) + "\n")


if __name__ == "__main__":
    main()
