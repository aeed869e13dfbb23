"""The process of another rank, as its leader has it. Knows processes and sockets.

It is this program once more, told by its environment which rank it is. The socket that is its
standard input ends when the leader does, in whatever way, and the follower with it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

from uag_common.errors import StartError
from uag_common.ranks.place import Place

STDERR = 2


class FollowerProcess:
    """Runs until its leader ends it, or fails."""

    def __init__(self, place: Place, module: str) -> None:
        """Starts `module`. Raises StartError."""
        self.place = place
        self._socket, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", module],
                    env={**os.environ, **place.environment()},
                    stdin=theirs.fileno(),
                    # What libraries print there is for a log.
                    stdout=STDERR,
                    # Ctrl-C in a terminal is for the leader, which ends the others.
                    start_new_session=True,
                )
            except OSError as error:
                self._socket.close()
                raise StartError(f"{place.name} cannot be started: {error}") from error

    def last_words(self) -> str:
        """Waits for its end: why it failed, else how it ended."""
        told = b""
        with suppress(OSError):
            while part := self._socket.recv(4096):
                told += part
        code = self._process.wait()
        return told.decode(errors="replace") or _ending(code)

    def tell_to_end(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self, deadline: float) -> None:
        """Waits until it has ended; by force at the deadline (of time.monotonic)."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._socket.close()


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
