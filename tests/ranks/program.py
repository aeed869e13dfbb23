"""A service of several processes without a model: what its followers do is told by the environment.

    python -m tests.ranks.program

The leader prints the process ids of the followers, in one line, and then waits until one is lost or
until SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from uag_common.errors import StartError
from uag_common.model_settings import ModelServiceSettings
from uag_common.process import run_service
from uag_common.ranks.leader import Ranks
from uag_common.ranks.place import Place
from uag_common.settings import setting

MODULE = "tests.ranks.program"
FOREVER = 1000.0


@dataclass(frozen=True, kw_only=True)
class ProgramSettings(ModelServiceSettings):
    PREFIX: ClassVar[str] = "UAG_TEST_"

    listen: str = setting("nothing listens", default="")
    model: str = setting("there is none", default="")
    followers: str = setting("what they do", default="wait")
    leader: str = setting("what it does once they are there", default="wait")


def refuse() -> None:
    raise StartError("UAG_TEST_MODEL: not this one")


def stumble() -> None:
    raise ValueError("one thing\nand another")


def hold_on() -> None:
    """As in a step that waits for another one."""
    time.sleep(FOREVER)


def die_later() -> None:
    """When the leader has met what comes of it."""
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


WORK: dict[str, Callable[[], None]] = {
    "wait": hold_on,
    "refuse": refuse,
    "stumble": stumble,
    "die": partial(os.kill, os.getpid(), signal.SIGKILL),
    "die later": die_later,
    "quit": partial(os._exit, 3),
}


def follow(settings: ProgramSettings, place: Place) -> None:
    (_folder(place) / str(place.rank)).write_text(str(os.getpid()))
    # Only one of them does it.
    WORK[settings.followers if place.rank == 1 else "wait"]()


async def serve(settings: ProgramSettings) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with Ranks(settings, MODULE) as ranks:
        await asyncio.to_thread(_tell, ranks.place)
        if settings.leader == "fail":
            ranks.failed(ValueError("in a step"))
        if settings.leader == "hang":
            ranks.hangs(7.0)
        while not stop.is_set():
            await ranks.intact(0.1)


def _tell(place: Place) -> None:
    """Prints their process ids once all have told them."""
    ids = []
    for other in place.others():
        file = _folder(place) / str(other.rank)
        while not (file.exists() and file.read_text()):
            time.sleep(0.02)
        ids.append(file.read_text())
    print(*ids, flush=True)


def _folder(place: Place) -> Path:
    assert place.store is not None
    return place.store.parent


if __name__ == "__main__":
    run_service("program", ProgramSettings, serve, follow)
