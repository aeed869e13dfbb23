"""The outermost frame of a service process: help, the log, the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from uag_common.at_end import end_all
from uag_common.errors import UagError
from uag_common.logs import set_up_log
from uag_common.ranks.errors import RankLostError
from uag_common.ranks.following import run_follower
from uag_common.ranks.place import Place
from uag_common.service_settings import ServiceSettings
from uag_common.settings import describe, load

S = TypeVar("S", bound=ServiceSettings)

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_USAGE = 2


def run_service(
    name: str,
    settings_class: type[S],
    serve: Callable[[S], Coroutine[Any, Any, None]],
    follow: Callable[[S, Place], None] | None = None,
) -> NoReturn:
    """Runs the service until it ends by itself. A failure to start is one line on standard error
    and exit code 1; an argument, which no service takes, is exit code 2. `follow` is what one of
    several processes does that are one service and of which another serves."""
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
        service = _telemetry_name(name, os.environ)
        set_up_log(service, settings.log_level, settings.log_format)
        place = Place.of(os.environ)
        if follow is not None and place.rank:
            run_follower(place, partial(follow, settings, place))
        asyncio.run(serve(settings))
    except RankLostError as error:
        log.critical("%s", error)
        code = EXIT_FAILED
    except UagError as error:
        _say(f"{name}: {error}")
        code = EXIT_FAILED
    except Exception as error:
        # A bug. It is one event, and no more than a failure to start may it wait for the model.
        log.critical("ended by an unexpected failure", exc_info=error)
        code = EXIT_FAILED
    with suppress(Exception):
        end_all()
    sys.stdout.flush()
    sys.stderr.flush()
    # A model that is still loading would hold a normal exit until it is loaded.
    os._exit(code)


def _telemetry_name(name: str, environ: Mapping[str, str]) -> str:
    """The name of the service in its log, as traces have it: uag-draft, unless said otherwise."""
    return environ.get("OTEL_SERVICE_NAME") or f"uag-{name.removesuffix('_service')}"


def print_help(name: str, settings_class: type[ServiceSettings]) -> None:
    """What `--help` says."""
    sys.stdout.write(f"python -m {name}\n\nSettings are environment variables:\n")
    sys.stdout.write(describe(settings_class) + "\n")


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
