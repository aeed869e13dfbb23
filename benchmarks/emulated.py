"""Emulated large models: `python -m benchmarks.emulated [--steps 30] [--a ...] [--c ...]`.

Behind the real servers stand models that replay what the real pair's target said, and sleep as long
as a step of a given set-up takes: what is measured is everything else, gRPC, conversion, planner,
at the costs of large pairs and with real tokenizers. In each cell of the grid the same answers are
asked for without drafts, with a fixed number of draft tokens in each round, and as the server
plans.

Told for each way: tokens a second after the first one, the acceptance as the orchestrator counts
it, how many times as fast as without drafts (`x off`), and the efficiency: that against the
sequential limit, for the acceptance that was asked for and for the one that was counted. `absolute`
is against the limit too, but for a plain step that takes no more than the emulated one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

from rich.progress import track

from benchmarks.emulation.grid import Plan, grid, measure
from benchmarks.emulation.recordings import Recording, of_target
from benchmarks.emulation.rows import rows, table
from benchmarks.emulation.scenario import Telling
from benchmarks.emulation.services import emulated_services
from benchmarks.emulation.tokenizers import TokenizedModel
from orchestrator.cli.services import DEFAULT_PAIR
from orchestrator.conversion.spans import spans

STEPS = (30.0,)
SHARES = (0.5, 0.8, 0.9)
COSTS = (0.02, 0.1, 0.2, 0.3)


def ends_inside(recordings: Sequence[Recording], draft: str) -> float:
    """The share of draft tokens that end inside a token of the target: a proposal that ends with
    such a one has a wrong last candidate, however right its text is."""
    vocabulary = TokenizedModel.named(draft).vocabulary
    inside = total = 0
    for recording in recordings:
        ends = set(recording.ends)
        own = list(accumulate(spans(vocabulary, recording.text).widths))
        inside += sum(end not in ends for end in own)
        total += len(own)
    return inside / total


def flags_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=float, nargs="+", default=STEPS, help="ms of the target")
    parser.add_argument("--a", type=float, nargs="+", default=SHARES, help="shares of right tokens")
    parser.add_argument("--c", type=float, nargs="+", default=COSTS, help="costs of a draft token")
    parser.add_argument(
        "--draft-tokens", type=int, nargs="*", default=(), help="forced; else about the best"
    )
    parser.add_argument("--prompts", type=int, default=2, help="of each way and cell")
    parser.add_argument("--tokens", type=int, help="of each answer; else as many as are recorded")
    parser.add_argument("--telling", type=Telling, choices=list(Telling), default=Telling.CONSTANT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=1, help="prompts of each cell, by auto")
    parser.add_argument("--no-auto", action="store_true", help="leave out what the server plans")
    parser.add_argument(
        "--keep", action="store_true", help="one orchestrator for all cells, whatever it learnt"
    )
    parser.add_argument("--target", default=DEFAULT_PAIR.target)
    parser.add_argument("--draft", default=DEFAULT_PAIR.draft)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    return parser.parse_args(arguments)


def main() -> None:
    flags = flags_of()
    recordings = of_target(flags.target)[: flags.prompts]
    if not recordings:
        sys.exit(f"nothing is recorded of {flags.target}")
    plan = Plan(
        recordings=recordings,
        tokens=flags.tokens,
        draft_tokens=flags.draft_tokens,
        telling=flags.telling,
        seed=flags.seed,
        warm_up=0 if flags.no_auto else flags.warm_up,
        fresh=not flags.keep,
        auto=not flags.no_auto,
    )
    cells = grid(flags.steps, flags.a, flags.c)
    with emulated_services(flags.target, flags.draft) as services:
        found = list(track(measure(services, cells, plan), "cells", total=len(cells)))
    sys.stdout.write(
        f"Emulation: {flags.target} with {flags.draft}, {len(recordings)} answers, probabilities "
        f"{flags.telling.value}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f}; "
        f"{ends_inside(recordings, flags.draft):.1%} of the draft's tokens end inside one of the "
        "target's:\n\n" + "\n".join(table(found)) + "\n"
    )
    if flags.json is not None:
        told = [asdict(row) for measured in found for row in rows(measured)]
        flags.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
