"""What a command of `uag` is, and how it becomes a part of the command line. Knows no command."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter, _SubParsersAction
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from orchestrator.cli.exit_codes import ExitCode

Subparsers: TypeAlias = "_SubParsersAction[Any]"


class OneLineParser(ArgumentParser):
    """Says what is wrong with a command line, and where its help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(ExitCode.USAGE, f"{self.prog}: {message} (see `{self.prog} --help`)\n")


class UsageError(Exception):
    """The command line is wrong in a way that only the command itself can tell."""


@dataclass(frozen=True, slots=True)
class Command:
    """`run` gets the parsed flags, and raises UsageError, UagError or KeyboardInterrupt."""

    name: str
    summary: str
    description: str
    examples: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], ExitCode]

    def add_to(self, subparsers: Subparsers) -> None:
        """Makes it one of the commands that the parser knows."""
        parser = subparsers.add_parser(
            self.name,
            help=self.summary,
            description=self.description,
            epilog=self.examples,
            formatter_class=RawDescriptionHelpFormatter,
            # A script with a shortened flag would break when another flag begins alike.
            allow_abbrev=False,
        )
        self.add_arguments(parser)
        parser.set_defaults(run=self.run, parser=parser)
