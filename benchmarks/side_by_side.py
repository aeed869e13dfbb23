"""Ours beside transformers, which a user would run instead: `python -m benchmarks.side_by_side`.

Both directions of a pair. In each, the services and a process with transformers hold the same
weights in the same number type with the same number of threads, and answer the same prompts in
turns; only one of them works at a time. `make bench` runs this; docs/benchmarks.md explains the
report.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from benchmarks.transformers_client import Transformers
from orchestrator.bench.comparison import Gap
from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.bench.plan import Turn
from orchestrator.bench.prompts import BenchPrompt
from orchestrator.bench.record import Record
from orchestrator.bench.report import PairReport
from orchestrator.bench.way import TRANSFORMERS, Way
from orchestrator.cli import bench
from orchestrator.cli.bench_flags import Choices, add_bench_flags, read_choices
from orchestrator.cli.bench_pair import RunningPair, measure, pair_reports, running_pair, threads
from orchestrator.cli.bench_report import finish, heading, recording
from orchestrator.cli.exit_codes import ExitCode, exit_code
from orchestrator.cli.interrupts import raise_on_signals, seen
from orchestrator.cli.services import DEFAULT_PAIR, Pair, choose_pair, choose_services
from orchestrator.cli.terminal import Screen
from uag_common.errors import UagError
from uag_common.models.source import resolve

DEFAULT_DTYPE = "bfloat16"
TEMPERATURES = (0.0, 0.7)
NOTES = (
    *bench.NOTES,
    "transformers has the same prompt ids, weights, number type, device and number of threads, in "
    "a process of its own. Its time to the first token in the two assisted ways holds a round: it "
    "verifies candidates together with the prompt.",
    "transformers' universal assisted generation is left out where tokens are drawn: in 5.24 its "
    "draws for two vocabularies are not those of the target (the pruned head's order and the map "
    "of ids disagree), and it leaves its draft model broken in memory.",
    "Drawn answers of transformers come from dice of its own, so their ids are not compared.",
)


def works(way: Way, temperature: float) -> bool:
    """Whether the way answers as the target would at that temperature."""
    return way is not Way.TRANSFORMERS_UAG or temperature == 0


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A pair that answers in all ways."""

    running: RunningPair
    peer: Transformers
    prompt_ids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """By the id of a prompt, as the target's service has them."""

    def answer(self, turn: Turn) -> Reply:
        """Raises UagError."""
        ids = self._ids(turn.prompt)
        if turn.way in TRANSFORMERS:
            return self.peer.answer(turn.way, ids, turn.tokens, turn.temperature, turn.seed)
        reply = self.running.answer(turn)
        if reply.prompt_tokens != len(ids):
            raise UagError(f"{turn.prompt.id}: {reply.prompt_tokens} tokens, not {len(ids)}")
        return reply

    def _ids(self, prompt: BenchPrompt) -> tuple[int, ...]:
        if prompt.id not in self.prompt_ids:
            encoded = self.running.client.tokenize(self.running.prompt(prompt))
            self.prompt_ids[prompt.id] = encoded.ids
        return self.prompt_ids[prompt.id]

    def judge(self, base: Measurement, other: Measurement, position: int) -> Gap | None:
        """How near a tie two answers part. Raises PeerError."""
        context = (*self.prompt_ids[base.prompt], *base.reply.ids[:position])
        return self.peer.gap(context, base.reply.ids[position], other.reply.ids[position])


@contextmanager
def side_by_side(pair: Pair, flags: Namespace, screen: Screen) -> Iterator[SideBySide]:
    """Starts all, and ends it when the block is left. Raises UagError."""
    services = choose_services(flags, pair)
    with running_pair(pair, services, screen) as running:
        target, draft = resolve(pair.target), resolve(pair.draft)
        with closing(Transformers(target, draft, running.target, threads())) as peer:
            versions = peer.versions()
            screen.line(f"transformers {versions.transformers} answers too")
            yield SideBySide(running, peer)


def measured(
    pair: Pair, flags: Namespace, choices: Choices, record: Record, screen: Screen
) -> list[PairReport]:
    """One direction. Raises UagError."""
    screen.line(f"target {pair.target}, draft {pair.draft}")
    with side_by_side(pair, flags, screen) as both:
        found = measure(both.running, choices, both.answer, record, works)
        return list(pair_reports(both.running, found, choices, Way.TRANSFORMERS, both.judge))


def run(flags: Namespace) -> None:
    """Raises UagError, OSError or KeyboardInterrupt."""
    screen = Screen.of(sys.stderr)
    choices = read_choices(flags, TEMPERATURES, base=Way.TRANSFORMERS)
    pair = choose_pair(flags, Pair(DEFAULT_PAIR.draft, DEFAULT_PAIR.target, DEFAULT_DTYPE))
    pairs = [pair] if flags.one_way else [pair, Pair(pair.target, pair.draft, pair.dtype)]
    with recording(choices, screen) as record:
        begun = heading(choices, NOTES)
        reports = [
            report for each in pairs for report in measured(each, flags, choices, record, screen)
        ]
    finish(begun, reports, choices, screen)


def main() -> int:
    """The exit code, as those of `uag`."""
    parser = ArgumentParser(description=__doc__, allow_abbrev=False)
    add_bench_flags(parser, tuple(Way))
    parser.add_argument("--one-way", action="store_true", help="not with the models exchanged")
    flags = parser.parse_args()
    try:
        raise_on_signals()
        run(flags)
    except UagError as error:
        sys.stderr.write(f"bench: {error}\n")
        return exit_code(error)
    except OSError as error:
        sys.stderr.write(f"bench: {error.strerror}: {error.filename}\n")
        return ExitCode.FAILED
    except KeyboardInterrupt:
        sys.stderr.write("bench: interrupted\n")
        return ExitCode.INTERRUPTED
    finally:
        seen()
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
