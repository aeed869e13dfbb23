"""The life of a process that follows a leader: it ends with it, and tells it why it failed. Knows
no model.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from uag_common.ranks.errors import failure
from uag_common.ranks.place import Place

log = logging.getLogger(__name__)

STDIN = 0
HASTE_SECONDS = 1.0
"""What fails here may come of another's end, which the leader sees at once: let it be first."""
LEADERLESS_SECONDS = 60.0


def run_follower(place: Place, work: Callable[[], None]) -> NoReturn:
    """Does the `work`, which ends when the leader has gone, and ends the process. SIGTERM and
    SIGINT are for the leader, which has running calls to finish."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    leader = _Leader(place.store.parent) if place.store else None
    try:
        work()
    except Exception as error:
        log.debug("%s failed", place.name, exc_info=error)
        time.sleep(HASTE_SECONDS)
        _tell(place, leader, failure(error))
        os._exit(1)
    if leader is not None:
        leader.wait()
    os._exit(0)


def _tell(place: Place, leader: _Leader | None, reason: str) -> None:
    if leader is None:
        sys.stderr.write(f"{place.name} {reason}\n")
    else:
        leader.tell(reason)


class _Leader:
    """The socket to it. When it ends, so does this process, whatever it is doing."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the leader's, which removes it unless it was killed."""
        self._folder = folder
        self._socket = socket.socket(fileno=os.dup(STDIN))
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            # Processes of ours must not hold the socket open.
            os.dup2(nothing.fileno(), STDIN)
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _follow(self) -> None:
        with suppress(OSError):
            self._socket.recv(1)
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)

    def tell(self, reason: str) -> None:
        with suppress(OSError):
            self._socket.sendall(reason.encode())

    def wait(self) -> None:
        """For its end."""
        self._reader.join(LEADERLESS_SECONDS)
