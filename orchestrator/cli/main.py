"""`uag`: runs a command, and turns its errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib.metadata import version

from orchestrator.cli import bench, demo, generate, models, trace, up
from orchestrator.cli.command import OneLineParser, UsageError
from orchestrator.cli.exit_codes import ExitCode, exit_code, exit_code_help
from orchestrator.cli.interrupts import raise_on_signals, seen
from uag_common.errors import UagError

COMMANDS = (
    demo.COMMAND,
    up.COMMAND,
    generate.COMMAND,
    trace.COMMAND,
    models.COMMAND,
    bench.COMMAND,
)
DESCRIPTION = """\
Universal assisted generation: a small draft model guesses ahead for a large target model, whatever
their vocabularies, and every token of the answer is the target's own."""
EXAMPLES = """\
examples:
  uag demo                                      see it work, from nothing
  uag up                                        run the services
  uag generate --chat "Why is the sky blue?"    ask them
  uag models check gemma-3-270m smollm2-135m-instruct
  uag bench --target MODEL --draft MODEL        is that pair worth it, and for what?

Data goes to standard output, progress and remarks to standard error; colours only to a terminal,
and never if NO_COLOR is set. `uag COMMAND --help` has more examples."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. `arguments`: without the program's name; default: those of the process."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        _parser().print_help(sys.stderr)
        return ExitCode.USAGE
    flags, unknown = _parser().parse_known_args(given)
    if unknown:
        told = f"unrecognized arguments: {' '.join(unknown)}"
        flags.parser.error(f"{told}; a text of several words goes in quotes")
    try:
        code = _run(flags)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has what it wanted. Python would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK


def _run(flags: Namespace) -> ExitCode:
    name = flags.parser.prog
    try:
        raise_on_signals()
        code: ExitCode = flags.run(flags)
        return code
    except UsageError as error:
        _say(f"{name}: {error} (see `{name} --help`)")
        return ExitCode.USAGE
    except UagError as error:
        _say(f"{name}: {error}")
        return exit_code(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        # A disk that is full or read-only, a folder that cannot be made.
        _say(f"{name}: {error.strerror or error}: {error.filename or 'a file of the model cache'}")
        return ExitCode.FAILED
    except BaseException as error:
        if not _is_interrupt(error):
            raise
        _say(f"{name}: interrupted")
        return ExitCode.INTERRUPTED
    finally:
        seen()


def _is_interrupt(error: BaseException | None) -> bool:
    """Or what came of one: a lock that it found half taken says so in an error of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _parser() -> ArgumentParser:
    parser = OneLineParser(
        prog="uag",
        description=DESCRIPTION,
        epilog=f"{EXAMPLES}\n\n{exit_code_help()}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"uag {version('uag')}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(subparsers)
    return parser


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
