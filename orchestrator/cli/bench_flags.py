"""Flags that say what a benchmark asks, how often, and where its files go. Knows no service."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.bench.plan import Wishes
from orchestrator.bench.prompts import DEFAULT_FILE, PromptSet, read_prompts
from orchestrator.bench.way import Way
from orchestrator.cli.services import add_service_flags

FOLDER = Path("uag-bench")
MOST_TEMPERATURE = 100.0


@dataclass(frozen=True, slots=True)
class Choices:
    """What the flags say."""

    wishes: Wishes
    prompts: PromptSet
    out: Path


def add_bench_flags(parser: ArgumentParser, ways: Sequence[Way]) -> None:
    """Those of the services, on free ports, and those of the benchmark."""
    add_service_flags(parser)
    # A benchmark beside services that answer others would measure both.
    parser.set_defaults(port=0, draft_port=0, verify_port=0)
    group = parser.add_argument_group("what is measured")
    group.add_argument(
        "--prompts", type=Path, default=DEFAULT_FILE, metavar="FILE",
        help='JSON lines, {"prompt"} or {"chat", "raw"}, with "kind" and "id"; or a prompt a line '
        "(default: two or three of ten kinds)",
    )  # fmt: skip
    group.add_argument(
        "--limit",
        type=whole(1),
        metavar="N",
        help="so many of the prompts, of all kinds alike",
    )
    group.add_argument(
        "--ways", nargs="+", metavar="WAY", choices=[way.value for way in ways],
        default=[way.value for way in ways],
        help=f"of {', '.join(way.value for way in ways)} (default: all); off is always measured",
    )  # fmt: skip
    group.add_argument(
        "--tokens", type=whole(2), default=64, metavar="N",
        help="most tokens of an answer (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--repeat", type=whole(1), default=1, metavar="N",
        help="times that each prompt is asked in each way (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--temperature", type=_temperature, action="append", metavar="T",
        help="draw tokens; 0: do not draw; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=whole(0), default=0, metavar="N", help="of drawn answers (default: 0)"
    )
    group.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help=f"for the files of the report (default: {FOLDER}/ and the time of day)",
    )  # fmt: skip


def read_choices(flags: Namespace, temperatures: tuple[float, ...], base: Way) -> Choices:
    """`temperatures`: where the flags name none; `base`: a way that is measured in any case, as
    `off` is. Raises InvalidRequestError for a file of prompts that cannot be used."""
    named = [Way(name) for name in flags.ways]
    wishes = Wishes(
        tokens=flags.tokens,
        repeat=flags.repeat,
        seed=flags.seed,
        temperatures=tuple(dict.fromkeys(flags.temperature or temperatures)),
        ways=tuple(way for way in Way if way in {*named, base, Way.OFF}),
    )
    out = flags.out or FOLDER / datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return Choices(wishes, read_prompts(flags.prompts, flags.limit), out)


def whole(least: int) -> Callable[[str], int]:
    """The type of a flag that is a whole number from `least` on."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            raise ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return int(text)

    return parse


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MOST_TEMPERATURE:
        raise ArgumentTypeError(f"{text!r} is no number from 0 to {MOST_TEMPERATURE:g}")
    return value
