"""`uag generate`: one prompt to a running orchestrator, its answer to standard output."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing

from google.protobuf.json_format import MessageToDict

from orchestrator.cli import figures
from orchestrator.cli.answer_printer import LEGEND, AnswerPrinter
from orchestrator.cli.command import Command, UsageError
from orchestrator.cli.connection_flags import add_connection_flags, connected
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.interrupts import uninterrupted
from orchestrator.cli.logprob_table import logprob_lines
from orchestrator.cli.prompts import PromptForm, as_prompt, read_prompt
from orchestrator.cli.request_flags import add_request_flags, request_options
from orchestrator.cli.terminal import Screen
from orchestrator.client import Answer, Client, Options, Prompt

DESCRIPTION = """\
Sends a prompt to a running orchestrator (see `uag up`) and streams the answer to standard output;
the figures go to standard error. On a terminal accepted draft tokens are green."""
EXAMPLES = """\
examples:
  uag generate "The Great Barrier Reef is the"
  uag generate --chat "Explain how a rainbow forms."
  uag generate --chat --system "Answer in one sentence." "Why is the sky blue?"
  uag generate --chat --temperature 0.8 --top-p 0.95 -n 3 "Name a colour."
  uag generate --chat --choice yes --choice no "Is the sea salty?"
  uag generate --chat --json-schema person.json "Invent a person." > person-1.json
  uag generate --messages --file conversation.json
  uag generate --file notes.txt --max-new-tokens 200 > continued.txt
  git diff | uag generate --chat --system "Summarise this change." -
  uag generate --json "Once upon a time" | grep '"finished"'
  uag generate --target 10.0.0.7:50050 "Hello"

--json writes one JSON object a line: the stream's messages (started, delta, finished) in protobuf's
JSON form (64-bit numbers as strings), with the field names of
protos/uag/orchestrator/v1/orchestrator.proto, where each field is explained."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the text; - is standard input")
    parser.add_argument("--file", metavar="FILE", help="read the prompt from FILE; - as above")
    group = parser.add_argument_group("what the prompt is", "a text to continue if none is given")
    form = group.add_mutually_exclusive_group()
    for flag, kind, told in (
        ("--chat", PromptForm.QUESTION, "a question to answer"),
        ("--messages", PromptForm.MESSAGES, "a conversation in JSON: a list of role and content"),
        ("--token-ids", PromptForm.TOKEN_IDS, "ids of the target, such as 5,17,3"),
    ):
        form.add_argument(flag, dest="form", action="store_const", const=kind, help=told)
    group.add_argument("--system", metavar="TEXT", help="a system message; implies --chat")
    parser.add_argument("--json", action="store_true", help="write the stream's messages as JSON")
    add_request_flags(parser)
    add_connection_flags(parser)


def run(flags: Namespace) -> ExitCode:
    """Raises UsageError or UagError."""
    if (flags.prompt is None) == (flags.file is None):
        raise UsageError("give a PROMPT, --file FILE, or - for standard input (one of them)")
    form = _form(flags)
    prompt = as_prompt(
        read_prompt(flags.prompt, flags.file, sys.stdin.buffer), form, system=flags.system
    )
    options = request_options(flags)
    write = _write_json if flags.json else _write_text
    with connected(flags) as client:
        write(client, prompt, options)
    return ExitCode.OK


def _form(flags: Namespace) -> PromptForm:
    form: PromptForm | None = flags.form
    if flags.system is None:
        return form or PromptForm.TEXT
    if form not in (None, PromptForm.QUESTION):
        raise UsageError(f"a system message goes with a question, not with {form.value}")
    return PromptForm.QUESTION


def _write_json(client: Client, prompt: Prompt, options: Options) -> None:
    out = Screen.of(sys.stdout)
    # A channel where a call is half begun can never be closed.
    with uninterrupted():
        call = client.responses(prompt, **options)
    with closing(call) as responses:
        for response in responses:
            content = MessageToDict(
                response,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            out.line(json.dumps(content, ensure_ascii=False))


def _write_text(client: Client, prompt: Prompt, options: Options) -> None:
    out, err = Screen.of(sys.stdout), Screen.of(sys.stderr)
    printer = AnswerPrinter(out, options.get("n") or 1)
    # A channel where a call is half begun can never be closed.
    with uninterrupted():
        call = client.generate(prompt, **options)
    with call as stream:
        try:
            for delta in stream:
                printer.show(delta)
        finally:
            printer.end()
        _write_figures(stream.answer(), err, legend=out.coloured)


def _write_figures(answer: Answer, err: Screen, *, legend: bool) -> None:
    if legend:
        err.line(LEGEND)
    for line in (*logprob_lines(answer), *figures.answer_lines(answer)):
        err.line(line)


COMMAND = Command(
    name="generate",
    summary="send a prompt to running services and stream the answer",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=add_arguments,
    run=run,
)
