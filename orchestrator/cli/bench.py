"""`uag bench`: is a pair worth its memory, and for what? Our own ways of answering side by side.

The verdict goes to standard output, progress to standard error, everything else to files.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from orchestrator.bench.way import OURS, Way
from orchestrator.cli.bench_flags import add_bench_flags, read_choices
from orchestrator.cli.bench_pair import measure, pair_reports, running_pair
from orchestrator.cli.bench_report import finish, heading, recording
from orchestrator.cli.command import Command
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.services import DEFAULT_PAIR, choose_pair, choose_services
from orchestrator.cli.terminal import Screen

DESCRIPTION = """\
Measures a pair on this machine: runs the three services, asks each prompt without drafts, with the
draft model, with looked-up text, and as the server chooses, in turns, and says in words what is
worth using and for what. Nothing else should run meanwhile.

The folder of --out gets report.md, report.json, requests.jsonl (a line for each request) and, with
matplotlib (`pip install 'uag[bench]'`), report.png."""
EXAMPLES = """\
examples:
  uag bench
  uag bench --target ./my-model --draft smollm2-135m-instruct --dtype bfloat16
  uag bench --prompts my-prompts.jsonl --tokens 128 --repeat 3
  uag bench --prompts questions.txt --limit 10 --temperature 0 --temperature 0.7
  uag bench --ways auto lookup --out before

Settings of the services are environment variables, as for `uag up`. After Ctrl-C the services end,
and requests.jsonl has what was measured. Exit code 1 if in float32 the ids of any way are not those
of the target alone. A folder that has a requests.jsonl is not written to again."""
NOTES = (
    "Time per output token: from the first token to the last, over the tokens after the first; "
    "speeds are ratios of it over the same prompt. A request that warms up each way is left out.",
    "No request finds what an earlier one computed of the same prompt.",
)


def add_arguments(parser: ArgumentParser) -> None:
    add_bench_flags(parser, OURS)


def run(flags: Namespace) -> ExitCode:
    """Raises UagError or KeyboardInterrupt; all services have ended by then."""
    screen = Screen.of(sys.stderr)
    choices = read_choices(flags, temperatures=(0.0,), base=Way.OFF)
    pair = choose_pair(flags, DEFAULT_PAIR)
    services = choose_services(flags, pair)
    with recording(choices, screen) as record:
        begun = heading(choices, NOTES)
        with running_pair(pair, services, screen) as running:
            measured = measure(running, choices, running.answer, record)
        pairs = list(pair_reports(running, measured, choices, Way.OFF))
    finish(begun, pairs, choices, screen)
    return ExitCode.OK


COMMAND = Command(
    name="bench",
    summary="measure a pair: what it is worth, and for what",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=add_arguments,
    run=run,
)
