"""What the tests of processes say when a process does not end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import Running, environment

STUCK = """
import threading, time
def waits_for_ever(): time.sleep(600)
threading.Thread(target=waits_for_ever, daemon=True).start()
print("about to wait", flush=True)
time.sleep(600)
"""


def test_a_process_that_does_not_end_tells_where_it_is(tmp_path: Path) -> None:
    output = tmp_path / "output.txt"
    with (
        output.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-c", STUCK], stdout=file, stderr=file, env=environment()
        ) as process,
    ):
        running = Running(process, output)
        running.wait_for_words("about to wait")
        with pytest.raises(pytest.fail.Exception) as told:
            running.end(0.1)
    message = str(told.value)
    assert message.startswith("did not end within 0.1 s; it said:\nabout to wait\n")
    assert "in waits_for_ever" in message
    assert "in <module>" in message
