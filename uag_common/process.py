"""The outermost frame of a service process: help, the log, the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from uag_common.errors import UagError
from uag_common.service_settings import ServiceSettings
from uag_common.settings import describe, load

S = TypeVar("S", bound=ServiceSettings)

OWN_LOGGERS = ("uag_common", "draft_service", "verify_service", "orchestrator")

EXIT_FAILED = 1
EXIT_USAGE = 2


def run_service(
    name: str, settings_class: type[S], serve: Callable[[S], Coroutine[Any, Any, None]]
) -> NoReturn:
    """Runs the service until it ends by itself. A failure to start is one line on standard error
    and exit code 1; an argument, which no service takes, is exit code 2."""
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print_help(name, settings_class)
        sys.exit(0)
    if arguments:
        _say(f"{name}: takes no arguments but --help; its settings are environment variables")
        sys.exit(EXIT_USAGE)
    code = 0
    try:
        settings = load(settings_class, os.environ)
        _set_up_log(settings.log_level)
        asyncio.run(serve(settings))
    except UagError as error:
        _say(f"{name}: {error}")
        code = EXIT_FAILED
    sys.stdout.flush()
    sys.stderr.flush()
    # A model that is still loading would hold a normal exit until it is loaded.
    os._exit(code)


def _set_up_log(level: str) -> None:
    """Our own words from `level` on; of libraries, warnings."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


def print_help(name: str, settings_class: type[ServiceSettings]) -> None:
    """What `--help` says."""
    sys.stdout.write(f"python -m {name}\n\nSettings are environment variables:\n")
    sys.stdout.write(describe(settings_class) + "\n")


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
