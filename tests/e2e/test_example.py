"""The example as a process, and the same call by a reflection tool that has no proto files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.services import RunningServices, free_address

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "generate.py"
METHOD = "uag.orchestrator.v1.Orchestrator/Generate"
SAME_REQUEST = {
    "chat": {
        "messages": [
            {"role": "system", "content": "Answer in one sentence."},
            {"role": "user", "content": "Why is the sky blue?"},
        ]
    },
    "maxNewTokens": 40,
    "sampling": {"temperature": 0.7, "seed": "1"},
    "stopping": {"stopSequences": ["\n\n"]},
}
LAST_LINE = re.compile(r"\n\[(\d+) tokens, ended by (\w+)\]\n$")
SECONDS = 120


def test_the_example_and_a_reflection_tool_get_the_same_answer(
    services: RunningServices, tmp_path: Path
) -> None:
    done = _example(services.orchestrator)
    assert done.returncode == 0, done.stderr
    end = LAST_LINE.search(done.stdout)
    assert end is not None, done.stdout
    events = _buf_curl(services.orchestrator, tmp_path)
    assert done.stdout[: end.start()] == "".join(
        event["delta"].get("text", "") for event in events if "delta" in event
    )
    finished = events[-1]["finished"]
    assert finished["usage"]["completionTokens"] == int(end.group(1)) > 0
    assert finished["finishReason"] == f"FINISH_REASON_{end.group(2).upper()}"


def test_without_a_server_the_example_says_so() -> None:
    address = free_address()
    done = _example(address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"cannot connect to {address}: Connection refused\n"


def test_the_example_is_short() -> None:
    lines = [line for line in EXAMPLE.read_text().splitlines() if line]
    assert len(lines) <= 20


def _example(address: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), address], capture_output=True, timeout=SECONDS, check=False
    )
    # As it is: a line break of another kind may be a part of the answer.
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _buf_curl(address: str, folder: Path) -> list[dict[str, Any]]:
    """The stream's messages. `folder` has no proto files: reflection tells the contract."""
    buf = shutil.which("buf", path=os.pathsep.join((str(ROOT / ".venv/bin"), os.environ["PATH"])))
    assert buf is not None
    plain = ("--protocol", "grpc", "--http2-prior-knowledge")
    done = subprocess.run(
        [buf, "curl", *plain, "-d", json.dumps(SAME_REQUEST), f"http://{address}/{METHOD}"],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    decoder, rest, events = json.JSONDecoder(), done.stdout.strip(), []
    while rest:
        event, end = decoder.raw_decode(rest)
        events.append(event)
        rest = rest[end:].lstrip()
    return events
