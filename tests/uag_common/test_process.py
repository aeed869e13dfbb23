"""What a service process says on its standard error, from its start to any end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import asyncio, logging, sys, threading, warnings
from dataclasses import dataclass
from uag_common.errors import StartError
from uag_common.process import run_service
from uag_common.service_settings import ServiceSettings

@dataclass(frozen=True, kw_only=True)
class Settings(ServiceSettings):
    PREFIX = "UAG_TEST_"

def fail():
    raise KeyError("secret\\nin two lines")

class Unfinished:
    def __del__(self):
        fail()

async def serve(settings):
{body}

run_service("draft_service", Settings, serve)
"""


def run(body: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """A service that does no more than that."""
    program = PROGRAM.replace("{body}", "\n".join(f"    {line}" for line in body.splitlines()))
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "UAG_TEST_LISTEN": "127.0.0.1:0", **changes},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def events(body: str, code: int = 0) -> list[dict[str, Any]]:
    """What it says, each line an event."""
    done = run(body)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_an_event_is_a_line_of_the_service() -> None:
    (event,) = events('logging.getLogger("uag_common").info("a\\nb")')
    assert (event["service"], event["level"], event["message"]) == ("uag-draft", "INFO", "a\nb")


def test_a_service_with_another_name_in_its_traces_has_it_in_its_log() -> None:
    done = run('logging.getLogger("uag_common").info("a")', OTEL_SERVICE_NAME="mine")
    assert json.loads(done.stderr)["service"] == "mine"


def test_text_is_for_people() -> None:
    body = 'logging.getLogger("uag_common").info("a")\nwarnings.warn("old")'
    done = run(body, UAG_TEST_LOG_FORMAT="text")
    first, second, *_ = done.stderr.splitlines()
    assert first.endswith(" INFO uag_common: a")
    assert " WARNING py.warnings: " in second
    assert "UserWarning: old" in second


def test_libraries_and_warnings_speak_the_same_form_from_warnings_on() -> None:
    library, warning = events(
        'logging.getLogger("library").info("no")\n'
        'logging.getLogger("library").warning("yes")\n'
        'warnings.warn("old")'
    )
    assert (library["logger"], library["message"]) == ("library", "yes")
    assert (warning["logger"], warning["level"]) == ("py.warnings", "WARNING")
    assert "UserWarning: old" in warning["message"]


def test_a_library_that_complains_for_ever_is_cut_short() -> None:
    told = events(
        'for seconds in range(9): logging.getLogger("library").warning("again in %d s", seconds)'
    )
    assert [event["message"] for event in told] == ["again in 0 s"]


@pytest.mark.parametrize(
    ("body", "level", "code"),
    [
        pytest.param("fail()", "CRITICAL", 1, id="the service"),
        pytest.param(
            "asyncio.get_running_loop().call_soon(fail)\nawait asyncio.sleep(0)",
            "ERROR", 0, id="a callback",
        ),
        pytest.param(
            "async def work(): fail()\n"
            "task = asyncio.ensure_future(work())\nawait asyncio.sleep(0)\ndel task",
            "ERROR", 0, id="a task",
        ),
        pytest.param(
            "thread = threading.Thread(target=fail)\nthread.start()\nthread.join()",
            "ERROR", 0, id="a thread",
        ),
        pytest.param("Unfinished()", "ERROR", 0, id="a destructor"),
        pytest.param("raise KeyboardInterrupt", "CRITICAL", -2, id="an interrupt"),
    ],
)  # fmt: skip
def test_what_nobody_catches_is_one_event(body: str, level: str, code: int) -> None:
    (event,) = events(body, code)
    assert event["level"] == level
    assert event["error"]["type"] in ("KeyError", "KeyboardInterrupt")
    assert "Traceback" in event["error"]["traceback"]


def test_a_bug_ends_the_process_although_a_thread_runs() -> None:
    (event,) = events(
        "loop = asyncio.get_running_loop()\n"
        "threading.Thread(target=threading.Event().wait).start()\nfail()",
        1,
    )
    assert event["level"] == "CRITICAL"


def test_a_failure_to_start_is_a_plain_line() -> None:
    done = run('raise StartError("UAG_TEST_X: no")')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "draft_service: UAG_TEST_X: no\n"
    done = run("pass", UAG_TEST_LOG_FORMAT="xml")
    assert done.returncode == 1
    assert done.stderr == "draft_service: UAG_TEST_LOG_FORMAT=xml: must be one of json, text\n"
