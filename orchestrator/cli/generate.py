"""`uag generate`: one prompt to a running orchestrator, its answer to standard output."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import closing

from orchestrator.cli import figures
from orchestrator.cli.answer_printer import LEGEND, AnswerPrinter
from orchestrator.cli.client import OrchestratorClient
from orchestrator.cli.command import Command, UsageError
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.messages import json_line
from orchestrator.cli.prompts import as_prompt, read_prompt
from orchestrator.cli.services import ORCHESTRATOR_ADDRESS
from orchestrator.cli.terminal import Screen
from orchestrator.events import Delta, Finished
from orchestrator.request import AnswerRequest
from uag_common.addresses import BadAddressError, split

DESCRIPTION = """\
Sends a prompt to a running orchestrator (see `uag up`) and streams the answer to standard output;
the figures go to standard error. On a terminal accepted draft tokens are green."""
EXAMPLES = """\
examples:
  uag generate "The Great Barrier Reef is the"
  uag generate --chat "Explain how a rainbow forms."
  uag generate --chat --system "Answer in one sentence." "Why is the sky blue?"
  uag generate --file notes.txt --max-new-tokens 200 > continued.txt
  git diff | uag generate --chat --system "Summarise this change." -
  uag generate --json "Once upon a time" | grep '"finished"'
  uag generate --target 10.0.0.7:50050 "Hello"

--json writes one JSON object a line: the stream's messages (started, delta, finished) in protobuf's
JSON form, with the field names of protos/uag/orchestrator/v1/orchestrator.proto."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the text; - is standard input")
    parser.add_argument("--file", metavar="FILE", help="read the prompt from FILE; - as above")
    parser.add_argument(
        "--chat", action="store_true", help="a question to answer, not a text to continue"
    )
    parser.add_argument("--system", metavar="TEXT", help="a system message; implies --chat")
    parser.add_argument(
        "--max-new-tokens", type=int, metavar="N", help="most tokens of the answer (default: the "
        "server's)",
    )  # fmt: skip
    parser.add_argument(
        "--draft-tokens", type=int, metavar="N", help="tokens to draft in each round, 0: never "
        "(default: the server's)",
    )  # fmt: skip
    parser.add_argument(
        "--target", type=_address, default=ORCHESTRATOR_ADDRESS, metavar="HOST:PORT",
        help="the orchestrator (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write the stream's messages as JSON")
    parser.add_argument(
        "--timeout", type=_seconds, default=600.0, metavar="S",
        help="seconds until the whole answer must be there (default: %(default)g)",
    )  # fmt: skip


def run(flags: Namespace) -> ExitCode:
    """Raises UsageError or UagError."""
    if (flags.prompt is None) == (flags.file is None):
        raise UsageError("give a PROMPT, --file FILE, or - for standard input (one of them)")
    text = read_prompt(flags.prompt, flags.file, sys.stdin.buffer)
    prompt = as_prompt(text, chat=flags.chat, system=flags.system)
    request = AnswerRequest(prompt, flags.max_new_tokens, flags.draft_tokens)
    with OrchestratorClient(flags.target) as client:
        if flags.json:
            _write_json(client, request, flags.timeout)
        else:
            _write_text(client, request, flags.timeout)
    return ExitCode.OK


def _write_json(client: OrchestratorClient, request: AnswerRequest, timeout: float) -> None:
    out = Screen.of(sys.stdout)
    with closing(client.responses(request, timeout)) as responses:
        for response in responses:
            out.line(json_line(response))


def _write_text(client: OrchestratorClient, request: AnswerRequest, timeout: float) -> None:
    out, err = Screen.of(sys.stdout), Screen.of(sys.stderr)
    finished = None
    printer = AnswerPrinter(out)
    try:
        with closing(client.answer(request, timeout)) as events:
            for event in events:
                match event:
                    case Delta():
                        printer.show(event)
                    case Finished():
                        finished = event
    finally:
        printer.end()
    if finished is not None:
        _write_figures(finished, err, legend=out.coloured)


def _write_figures(finished: Finished, err: Screen, *, legend: bool) -> None:
    if legend:
        err.line(LEGEND)
    err.line(figures.summary(finished))
    if lost := figures.degradation(finished):
        err.line(lost)


def _address(text: str) -> str:
    try:
        split(text)
    except BadAddressError as error:
        raise ArgumentTypeError(str(error)) from error
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds greater than 0")
    return seconds


COMMAND = Command(
    name="generate",
    summary="send a prompt to running services and stream the answer",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=add_arguments,
    run=run,
)
