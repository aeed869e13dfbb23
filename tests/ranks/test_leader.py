"""Several processes that are one service end together, whichever ends first and however; nobody is
left, and one reason is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.ranks.program import MODULE

SECONDS = 20.0
QUICKLY = 5.0


class Service:
    """The program with its followers, which have all begun."""

    def __init__(
        self, size: int, *, followers: str = "wait", leader: str = "wait", **environ: str
    ) -> None:
        settings = {"tensor_parallel": str(size), "followers": followers, "leader": leader}
        named = {f"UAG_TEST_{name.upper()}": value for name, value in settings.items()}
        self.process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            env={**os.environ, **named, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        ids = [int(word) for word in self.process.stdout.readline().split()]
        self.followers = list(_running(ids))

    def end(self, seconds: float = SECONDS) -> tuple[int, str]:
        """Its exit code and what it said, once all have ended."""
        _, said = self.process.communicate(timeout=seconds)
        _, left = psutil.wait_procs(self.followers, timeout=QUICKLY)
        assert not left
        return self.process.returncode, said

    def kill(self) -> None:
        self.process.kill()
        for follower in self.followers:
            with suppress(psutil.NoSuchProcess):
                follower.kill()
        self.process.communicate()


def _running(ids: Iterable[int]) -> Iterator[psutil.Process]:
    for number in ids:
        with suppress(psutil.NoSuchProcess):
            yield psutil.Process(number)


@pytest.fixture
def services() -> Iterator[list[Service]]:
    """Ended after the test, whatever it leaves."""
    started: list[Service] = []
    yield started
    for service in started:
        service.kill()


def _reason(said: str) -> str:
    """The only line."""
    (line,) = said.splitlines()
    event = json.loads(line)
    assert event["level"] == "CRITICAL"
    return str(event["message"])


def test_a_clean_stop_is_no_failure_and_leaves_nothing(
    services: list[Service], tmp_path: Path
) -> None:
    services.append(service := Service(3, TMPDIR=str(tmp_path)))
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    service.process.terminate()
    assert service.end(QUICKLY) == (0, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ("die", "rank 1 of 3 was ended by SIGKILL"),
        ("quit", "rank 1 of 3 ended with exit code 3"),
        ("refuse", "rank 1 of 3 failed: UAG_TEST_MODEL: not this one"),
        ("stumble", "rank 1 of 3 failed: ValueError: one thing"),
    ],
)
def test_one_that_ends_ends_all(services: list[Service], work: str, reason: str) -> None:
    services.append(service := Service(3, followers=work))
    code, said = service.end()
    assert (code, _reason(said)) == (1, reason)


def test_one_that_is_killed_later_ends_all(services: list[Service]) -> None:
    services.append(service := Service(3))
    service.followers[1].kill()
    code, said = service.end(QUICKLY)
    assert (code, _reason(said)) == (1, "rank 2 of 3 was ended by SIGKILL")


def test_nothing_outlives_a_leader_that_is_killed(services: list[Service], tmp_path: Path) -> None:
    services.append(service := Service(3, TMPDIR=str(tmp_path)))
    service.process.kill()
    assert service.end(QUICKLY) == (-signal.SIGKILL, "")
    assert not list(tmp_path.iterdir())


def test_signals_are_for_the_leader(services: list[Service]) -> None:
    """A process group is told to end as a whole; running calls may still need the followers."""
    services.append(service := Service(2))
    (follower,) = service.followers
    follower.terminate()
    follower.send_signal(signal.SIGINT)
    with pytest.raises(psutil.TimeoutExpired):
        follower.wait(1)


def test_one_that_hangs_is_ended_by_force(services: list[Service]) -> None:
    services.append(service := Service(2))
    service.followers[0].suspend()
    service.process.terminate()
    assert service.end() == (0, "")


def test_a_step_that_hangs_ends_all(services: list[Service]) -> None:
    services.append(service := Service(2, leader="hang"))
    code, said = service.end()
    assert (code, _reason(said)) == (
        1,
        "a step of 2 processes runs for 7.0 s: one of them hangs",
    )


def test_an_end_is_a_better_reason_than_what_comes_of_it(services: list[Service]) -> None:
    services.append(service := Service(2, followers="die later", leader="fail"))
    code, said = service.end()
    assert (code, _reason(said)) == (1, "rank 1 of 2 was ended by SIGKILL")


def test_a_step_that_fails_ends_all(services: list[Service]) -> None:
    services.append(service := Service(2, leader="fail"))
    code, said = service.end()
    assert (code, _reason(said)) == (1, "rank 0 of 2 failed: ValueError: in a step")
