"""A process that answers lines of JSON with lines of JSON, and may die of one.

For what nothing can stop from within once it has begun: templates, compilers. The program of the
process sets its own limits. Knows processes and sockets; it must not know what the lines say.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from uag_common.errors import InternalError, OverloadedError

KILLED = -signal.SIGKILL
TOOK_TOO_LONG = -signal.SIGPROF
"""The end of a program that limits what it computes for a request by that timer."""

MAX_IDLE = 4
"""Processes of one program that are kept for the next requests."""

RETRY_SECONDS = 1.0


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


class LineProcesses:
    """Processes of one program, started as they are needed and some of them kept: one for each
    request that is asked at the same time. May be used by several threads."""

    def __init__(self, start: Callable[[], LineProcess]) -> None:
        self._start = start
        self._idle: list[LineProcess] = []

    def ask(self, request: Any) -> Any:
        """The reply. Raises ProcessEndedError for a request that a process dies of, OverloadedError
        if a reply cannot be had now."""
        try:
            return self._ask(request)
        except NoReplyError as error:
            problem = "there is no time for it now; try again later"
            raise OverloadedError(problem, RETRY_SECONDS) from error
        except ProcessEndedError as error:
            if error.status != KILLED:
                raise
            problem = "the process that works at it was killed; try again"
            raise OverloadedError(problem, RETRY_SECONDS) from error

    def _ask(self, request: Any) -> Any:
        process, fresh = self._take()
        try:
            return self._reply(process, request)
        except ProcessEndedError as error:
            if error.status == TOOK_TOO_LONG or (fresh and error.status != KILLED):
                raise
            # It may have died of what it was asked before, or of nothing that it was asked.
            return self._reply(self._start(), request)

    def _take(self) -> tuple[LineProcess, bool]:
        """A process, and whether it was never asked before."""
        try:
            return self._idle.pop(), False
        except IndexError:
            return self._start(), True

    def _reply(self, process: LineProcess, request: Any) -> Any:
        reply = process.ask(request)
        if len(self._idle) < MAX_IDLE:
            self._idle.append(process)
        return reply


def _close(process: subprocess.Popen[bytes], connection: socket.socket, replies: BinaryIO) -> None:
    replies.close()
    connection.close()
    process.kill()
    process.wait()


def _line(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
