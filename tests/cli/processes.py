"""Runs `uag` as a process, and looks after what it leaves behind. Knows no command."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent.parent
UAG = (sys.executable, "-m", "orchestrator.cli.main")
WAIT_SECONDS = 60.0


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of the tests, without what would steer the services or the colours. A process that is
    aborted shows where each of its threads is."""
    steering = ("UAG_DRAFT_", "UAG_VERIFY_", "UAG_ORCHESTRATOR_", "NO_COLOR", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {**kept, "TERM": "xterm", "PYTHONFAULTHANDLER": "1", **(changes or {})}


def uag(
    *arguments: str, given: bytes = b"", changes: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs it to its end with `given` as standard input."""
    done = subprocess.run(
        [*UAG, *arguments],
        input=given,
        capture_output=True,
        env=environment(changes),
        cwd=ROOT,
        timeout=WAIT_SECONDS * 5,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def uag_on_terminal(*arguments: str, changes: Mapping[str, str] | None = None) -> str:
    """What it shows on a terminal, standard output and standard error together."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*UAG, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(changes),
        cwd=ROOT,
    ):
        os.close(theirs)
        shown = b"".join(_chunks(ours))
    os.close(ours)
    return shown.decode()


def _chunks(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:
            # The other side of a terminal ends like this.
            return
        if not chunk:
            return
        yield chunk


class Running:
    """A `uag` that runs; its output goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self.output = output
        self._seen: dict[int, psutil.Process] = {}

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_for_words(self, words: str) -> None:
        wait_until(lambda: words in self.said() or self.process.poll() is not None)
        assert words in self.said(), self.said()

    def children(self) -> list[psutil.Process]:
        """Its services, in the order of their start."""
        process = psutil.Process(self.process.pid)
        # These may have processes of their own, which are to end with them.
        self._seen |= {child.pid: child for child in process.children(recursive=True)}
        return sorted(process.children(), key=lambda child: child.pid)

    def end(self, seconds: float = WAIT_SECONDS) -> int:
        """The exit code. Fails with what it said, and where each of its threads is, if it does not
        end in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(WAIT_SECONDS)
            pytest.fail(f"did not end within {seconds:g} s; it said:\n{self.said()}")

    def left_behind(self) -> list[psutil.Process]:
        """What still runs, shortly after, of the children that `children` ever found."""
        wait_until(lambda: not self._alive(), seconds=15)
        return self._alive()

    def _alive(self) -> list[psutil.Process]:
        return [child for child in self._seen.values() if child.is_running()]


@contextmanager
def running_uag(
    *arguments: str, output: Path, changes: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """Ends it, and all that it started, when the block is left."""
    with (
        output.open("wb") as file,
        subprocess.Popen(
            [*UAG, *arguments], stdout=file, stderr=file, env=environment(changes), cwd=ROOT
        ) as process,
    ):
        running = Running(process, output)
        try:
            yield running
        finally:
            if process.poll() is None:
                running.children()
                process.kill()
            for child in running.left_behind():
                child.kill()


def wait_until(condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    """Polls; returns in any case when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
