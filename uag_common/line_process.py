"""A process that answers lines of JSON with lines of JSON, and may die of one.

For what nothing can stop from within once it has begun: templates, compilers. The program of the
process sets its own limits. Knows processes and sockets; it must not know what the lines say.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any, BinaryIO

from uag_common.errors import InternalError


class NoReplyError(Exception):
    """The process got no time to answer in. It is over."""


class ProcessEndedError(Exception):
    """The process died of the request, or before it. `status` as `subprocess.Popen` has it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"ended with status {status}")
        self.status = status


class LineProcess:
    """Runs `program`, a Python file, which is told `opening` first, and nothing is answered to
    that. It ends with this object, and with the process that this one lives in."""

    def __init__(self, program: Path, opening: Any, patience_seconds: float) -> None:
        """Raises InternalError if there can be no process."""
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(patience_seconds)
        self._replies = self._socket.makefile("rb")
        # Sent with the first request: the process may not be there yet to take it.
        self._unsent = _line(opening)
        with theirs:
            self._process = self._start(program, theirs)
        self.close = weakref.finalize(self, _close, self._process, self._socket, self._replies)

    def _start(self, program: Path, theirs: socket.socket) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                # -P: what stands beside the program is not to be imported by short names.
                [sys.executable, "-P", str(program)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                # Ctrl-C in a terminal is meant for the process that waits for this one.
                start_new_session=True,
            )
        except OSError as error:
            self._replies.close()
            self._socket.close()
            raise InternalError(f"{program.stem} cannot be started: {error}") from error

    @property
    def running(self) -> bool:
        """Whether it can be asked."""
        return self.close.alive and self._process.poll() is None

    def ask(self, request: Any) -> Any:
        """The reply. Raises NoReplyError or ProcessEndedError; then it cannot be asked again. Not
        to be called by two threads at once."""
        opening, self._unsent = self._unsent, b""
        try:
            self._socket.sendall(opening + _line(request))
            reply = self._replies.readline()
        except TimeoutError as error:
            self.close()
            raise NoReplyError from error
        except OSError:
            reply = b""
        if reply.endswith(b"\n"):
            return json.loads(reply)
        self.close()
        raise ProcessEndedError(self._process.returncode)


def _close(process: subprocess.Popen[bytes], connection: socket.socket, replies: BinaryIO) -> None:
    replies.close()
    connection.close()
    process.kill()
    process.wait()


def _line(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
