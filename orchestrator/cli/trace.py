"""`uag trace`: where the trace of a request is to be read."""

from __future__ import annotations

import os
import re
import sys
import webbrowser
from argparse import ArgumentParser, Namespace

from orchestrator.cli.command import Command, UsageError
from orchestrator.cli.exit_codes import ExitCode
from orchestrator.cli.terminal import Screen

VARIABLE = "UAG_JAEGER_URL"
DEFAULT_URL = "http://127.0.0.1:16686"
DESCRIPTION = f"""\
Prints the link to the trace of a request in Jaeger. The id is in the last line of `uag generate`,
in `Started.trace_id` and in the log; any W3C traceparent will do as well.

Services export traces if OTEL_EXPORTER_OTLP_ENDPOINT is set; docs/traces.md tells how to read one.
Jaeger is looked for at {DEFAULT_URL}, or where {VARIABLE} says."""
EXAMPLES = """\
examples:
  uag trace 0af7651916cd43dd8448eb211c80319c
  uag trace --open 0af7651916cd43dd8448eb211c80319c
  uag trace --jaeger https://jaeger.example.com 0af7651916cd43dd8448eb211c80319c"""

_TRACE_ID = re.compile(
    r"(?:[0-9a-f]{2}-)?(?P<id>(?!0{32})[0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?"
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE_ID", help="32 hexadecimal digits, or a traceparent")
    parser.add_argument("--jaeger", metavar="URL", help=f"where Jaeger is; else {VARIABLE}")
    parser.add_argument("--open", action="store_true", help="open it in a browser, too")


def run(flags: Namespace) -> ExitCode:
    """Raises UsageError."""
    link = trace_link(flags.jaeger or os.environ.get(VARIABLE) or DEFAULT_URL, flags.trace)
    Screen.of(sys.stdout).line(link)
    if flags.open and not webbrowser.open(link):
        Screen.of(sys.stderr).line("no browser was found here; open the link yourself")
    return ExitCode.OK


def trace_link(jaeger: str, trace: str) -> str:
    """The page of a trace. Raises UsageError."""
    found = _TRACE_ID.fullmatch(trace.strip().lower())
    if found is None:
        raise UsageError(f"{trace!r} is no trace id: 32 hexadecimal digits, not all zero")
    if not re.match("https?://.", jaeger):
        raise UsageError(f"{jaeger!r} is no address of Jaeger, such as {DEFAULT_URL}")
    return f"{jaeger.rstrip('/')}/trace/{found['id']}"


COMMAND = Command(
    name="trace",
    summary="print or open the link to the trace of a request",
    description=DESCRIPTION,
    examples=EXAMPLES,
    add_arguments=add_arguments,
    run=run,
)
