"""The log of a service as a process, from its start on: what it says, and what it never says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.cli.processes import wait_until
from tests.services import free_address, wait_for_health
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

GENERATE = "/uag.orchestrator.v1.Orchestrator/Generate"
PRIVATE = "what-nobody-else-may-read"


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """One whose peers are away, and the file of its log."""

    channel: Any
    log: Path

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def refusal(self, request: pb.GenerateRequest) -> grpc.StatusCode:
        """How it ends this request."""
        stub = orchestrator_pb2_grpc.OrchestratorStub(self.channel)
        with pytest.raises(grpc.RpcError) as refused:
            list(stub.Generate(request, timeout=10))
        code: grpc.StatusCode = refused.value.code()
        return code


@contextmanager
def orchestrator(log: Path, **settings: str) -> Iterator[Orchestrator]:
    """Runs until the end of the block, then ends well, with nothing on its standard output."""
    settings |= {name: free_address() for name in ("LISTEN", "DRAFT", "VERIFY")}
    changes = {f"UAG_ORCHESTRATOR_{name}": value for name, value in settings.items()}
    with (
        log.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", "orchestrator"],
            env={**os.environ, **changes},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
        ) as process,
    ):
        try:
            wait_for_health(settings["LISTEN"], "live", serving=True)
            wait_for_health(settings["LISTEN"], "ready", serving=False)
            with grpc.insecure_channel(settings["LISTEN"]) as channel:
                yield Orchestrator(channel, log)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, said) == (0, b"")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_each_line_is_an_event_of_the_service(log: Path) -> None:
    with orchestrator(log) as running:
        wait_until(lambda: len(running.lines) >= 3)
    first, *peers = running.events
    assert first["message"].startswith("listening on port ")
    assert {event["service"] for event in running.events} == {"uag-orchestrator"}
    assert {(event["level"], event["message"].partition(" at ")[0]) for event in peers} == {
        ("WARNING", "draft service"),
        ("WARNING", "verify service"),
    }


def test_no_word_of_a_client_and_no_line_for_its_mistakes(log: Path) -> None:
    chat = pb.Chat(messages=[pb.ChatMessage(role=PRIVATE, content=PRIVATE)])
    mistakes = (
        pb.GenerateRequest(text=PRIVATE, max_new_tokens=0),
        pb.GenerateRequest(text=PRIVATE, request_id=PRIVATE * 100),
        pb.GenerateRequest(chat=chat),
        pb.GenerateRequest(),
    )
    with orchestrator(log) as running:
        for mistake in mistakes:
            assert running.refusal(mistake) is grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as refused:
            running.channel.unary_unary(GENERATE)(b"\xff" + PRIVATE.encode(), timeout=5)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        for _ in range(3):
            assert running.refusal(pb.GenerateRequest(text=PRIVATE)) is grpc.StatusCode.UNAVAILABLE
    # That a peer is away is told of the peer, and not of each request.
    assert {event["logger"] for event in running.events} == {"orchestrator", "orchestrator.peer"}
    assert not any(PRIVATE in line for line in running.lines)


def test_text_is_for_people(log: Path) -> None:
    with orchestrator(log, LOG_FORMAT="text") as running:
        pass
    assert " INFO orchestrator: listening on port " in running.lines[0]


def test_a_level_leaves_out_what_is_below(log: Path) -> None:
    with orchestrator(log, LOG_LEVEL="error") as running:
        pass
    assert running.lines == []
