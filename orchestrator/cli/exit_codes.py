"""The exit codes of `uag`, and what they mean. Knows errors, no command."""

from __future__ import annotations

from enum import IntEnum

from uag_common.errors import Status, UagError


class ExitCode(IntEnum):
    """A few of the customary ones (sysexits.h), each with its line of `uag --help`."""

    OK = 0
    FAILED = 1
    USAGE = 2
    BAD_INPUT = 65
    UNREACHABLE = 69
    TRY_AGAIN = 75
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed; standard error says why",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.BAD_INPUT: "a prompt or a value was refused",
    ExitCode.UNREACHABLE: "a service or the network cannot be reached",
    ExitCode.TRY_AGAIN: "the services are too busy or too slow; try again later",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}

_BY_STATUS: dict[Status, ExitCode] = {
    "INVALID_ARGUMENT": ExitCode.BAD_INPUT,
    "OUT_OF_RANGE": ExitCode.BAD_INPUT,
    "UNAVAILABLE": ExitCode.UNREACHABLE,
    "RESOURCE_EXHAUSTED": ExitCode.TRY_AGAIN,
    "DEADLINE_EXCEEDED": ExitCode.TRY_AGAIN,
}


def exit_code(error: UagError) -> ExitCode:
    """The code of a command that ended with this error."""
    return _BY_STATUS.get(error.status, ExitCode.FAILED)


def exit_code_help() -> str:
    """A line for each code, for `--help`."""
    lines = (f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())
    return "exit codes:\n" + "\n".join(lines)
