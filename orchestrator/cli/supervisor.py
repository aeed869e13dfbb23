"""Services as child processes: started, watched until they serve, stopped together.

Whatever happens to this process, its children end: by SIGTERM when it stops, and by the end of
their standard input when it dies without a word.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.cli.interrupts import seen, uninterrupted
from uag_common.addresses import reachable_form
from uag_common.errors import UagError
from uag_common.rpc.channel import CLIENT_OPTIONS

POLL_SECONDS = 0.1
STOP_SECONDS = 40.0
KEPT_LINES = 20


class ServiceDiedError(UagError):
    """A child process ended by itself; the message has its own last words."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A service to run: a module with settings `PREFIX...`, the address it is to listen on."""

    module: str
    prefix: str
    address: str
    settings: Mapping[str, str]
    """By field name in lower case, without the prefix."""

    @property
    def reached_at(self) -> str:
        """The address for clients on this machine."""
        return reachable_form(self.address)

    def environment(self) -> dict[str, str]:
        settings = {**self.settings, "listen": self.address, "stop_with_parent": "true"}
        named = {self.prefix + name.upper(): value for name, value in settings.items()}
        return {**os.environ, **named}


class Child:
    """One running service. Its log lines go on to `log`, or are kept for its last words only."""

    def __init__(self, spec: ServiceSpec, log: IO[str] | None) -> None:
        self.spec = spec
        self._log = log
        self._last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.process = subprocess.Popen(
            [sys.executable, "-m", spec.module],
            env=spec.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Standard output is for the answer alone.
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A Ctrl-C in the terminal is for this process alone, which then stops its children.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            if line.strip():
                self._last_lines.append(line.strip())
            self._pass_on(line)

    def _pass_on(self, line: str) -> None:
        try:
            if self._log is not None:
                self._log.write(f"[{self.spec.module}] {line}")
                self._log.flush()
        except OSError:
            # Nobody reads any more; the child must not come to a halt for that.
            self._log = None

    def check(self) -> None:
        """Raises ServiceDiedError if the process has ended."""
        code = self.process.poll()
        if code is None:
            return
        self._reader.join(timeout=1)
        if code < 0:
            raise ServiceDiedError(f"{self.spec.module} was ended by {_signal_name(-code)}")
        words = self._last_lines[-1] if self._last_lines else "it said nothing"
        words = words.removeprefix(f"{self.spec.module}: ")
        raise ServiceDiedError(f"{self.spec.module} ended with exit code {code}: {words}")

    def serves(self, service: str = "") -> bool:
        """Asks its health once: of the whole process, or of one thing by its name."""
        request = health_pb2.HealthCheckRequest(service=service)
        with grpc.insecure_channel(self.spec.reached_at, options=CLIENT_OPTIONS) as channel:
            try:
                stub = health_pb2_grpc.HealthStub(channel)
                answer = stub.Check(request, timeout=1, wait_for_ready=True)
            except grpc.RpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    def terminate(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()

    def wait(self, deadline: float) -> None:
        """Until it has ended; by force at the deadline (of time.monotonic)."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(timeout=1)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Supervisor:
    """Runs services until it is left: `with Supervisor() as supervisor: ...`."""

    def __init__(self, log: IO[str] | None = None) -> None:
        self._log = log
        self.children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, spec: ServiceSpec) -> Child:
        with uninterrupted():
            child = Child(spec, self._log)
            self.children.append(child)
        return child

    def wait_serving(self, child: Child, service: str = "") -> None:
        """Until the child is SERVING, or `service` in it. Raises ServiceDiedError if any child ends
        before."""
        while True:
            self.check()
            if child.serves(service):
                return
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raises ServiceDiedError for the first child that has ended."""
        for child in self.children:
            child.check()

    def stop(self) -> None:
        """Ends all children, the last started first to be told, all waited for; running calls may
        finish. A second interrupt ends them at once."""
        try:
            seen()
            self._tell_and_wait()
        except KeyboardInterrupt:
            with uninterrupted():
                for child in self.children:
                    child.kill()
                self._wait()
            raise
        self.children.clear()

    def _tell_and_wait(self) -> None:
        for child in reversed(self.children):
            child.terminate()
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        for child in self.children:
            child.wait(deadline)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
