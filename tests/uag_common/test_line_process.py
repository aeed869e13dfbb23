"""Whose fault the end of a process is: the request's, or nobody's."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from uag_common.errors import OverloadedError
from uag_common.line_process import MAX_IDLE, LineProcess, LineProcesses, ProcessEndedError

PROGRAM = """
import json, os, sys, time
opening = sys.stdin.readline()
for line in sys.stdin:
    request = json.loads(line)
    if "signal" in request:
        os.kill(os.getpid(), request["signal"])
    if "status" in request:
        os._exit(request["status"])
    time.sleep(request.get("seconds", 0))
    print(json.dumps([json.loads(opening), os.getpid()]), flush=True)
"""

Start = Callable[[], LineProcess]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return lambda: LineProcess(program, "opening", patience_seconds=30)


def test_a_process_is_kept_for_the_next_request(start: Start) -> None:
    processes = LineProcesses(start)
    (opening, first), (_, second) = processes.ask({}), processes.ask({})
    assert (opening, second) == ("opening", first)


def test_requests_at_once_have_processes_of_their_own_and_few_are_kept(start: Start) -> None:
    processes = LineProcesses(start)
    with ThreadPoolExecutor(2 * MAX_IDLE) as threads:
        ids = {pid for _, pid in threads.map(processes.ask, [{"seconds": 1}] * 2 * MAX_IDLE)}
    assert len(ids) > MAX_IDLE
    assert sum(psutil.pid_exists(pid) for pid in ids) == MAX_IDLE


def test_one_that_was_killed_while_it_waited_is_replaced(start: Start) -> None:
    processes = LineProcesses(start)
    _, killed = processes.ask({})
    os.kill(killed, signal.SIGKILL)
    assert processes.ask({})[1] != killed


def test_a_request_that_is_killed_each_time_may_be_tried_again(start: Start) -> None:
    with pytest.raises(OverloadedError, match="killed"):
        LineProcesses(start).ask({"signal": signal.SIGKILL})


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"signal": signal.SIGPROF}, -signal.SIGPROF),
        ({"signal": signal.SIGSEGV}, -signal.SIGSEGV),
        ({"status": 3}, 3),
    ],
)
def test_the_status_tells_what_a_process_died_of(
    start: Start, request_: dict[str, int], status: int, used: bool
) -> None:
    processes = LineProcesses(start)
    if used:
        processes.ask({})
    with pytest.raises(ProcessEndedError) as ended:
        processes.ask(request_)
    assert ended.value.status == status
    assert processes.ask({})[0] == "opening"
