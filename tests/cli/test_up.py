"""`uag up` with a tiny model on real ports: serving, answering, and every way to end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from orchestrator.cli.examples import buf_curl
from tests.cli.processes import ROOT, Running, running_uag, uag, wait_until
from uag_common.addresses import split, with_real_port

FREE_PORTS = ("--draft-port", "0", "--verify-port", "0")
READY = "Ctrl-C stops all three"


@pytest.fixture
def port() -> str:
    return str(split(with_real_port("127.0.0.1:0"))[1])


@contextmanager
def up(model: Path, output: Path, port: str = "0") -> Iterator[Running]:
    """`uag up` with the model on both sides."""
    models = ("--target", str(model), "--draft", str(model))
    arguments = ("up", *models, *FREE_PORTS, "--port", port)
    with running_uag(*arguments, output=output / "up.txt") as running:
        yield running


def test_serves_answers_and_ends_with_code_0_on_sigterm(
    tiny_model: Path, tmp_path: Path, port: str
) -> None:
    with up(tiny_model, tmp_path, port) as running:
        running.wait_for_words(READY)
        said = running.said()
        for service in ("draft_service", "verify_service", "orchestrator"):
            assert f"{service} serves on 127.0.0.1:" in said
        assert "grpcurl -plaintext -d '" in said
        assert "[verify_service] " in said
        _check_answers(f"127.0.0.1:{port}")
        assert len(running.children()) == 3
        running.process.send_signal(signal.SIGTERM)
        assert running.end() == 0
        assert running.left_behind() == []


def _check_answers(address: str) -> None:
    flags = ("--target", address, "--json", "--max-new-tokens", "12", "--draft-tokens", "4")
    done = uag("generate", *flags, "It rained")
    assert done.returncode == 0, done.stderr
    finished = json.loads(done.stdout.splitlines()[-1])["finished"]
    assert finished["speculation"]["candidates_accepted"] > 0
    bad = uag("generate", "--target", address, "--max-new-tokens", "-1", "hi")
    assert (bad.returncode, bad.stdout) == (65, "")
    assert bad.stderr.startswith("uag generate: INVALID_ARGUMENT: max_new_tokens: ")
    _check_buf_curl(address)


def _check_buf_curl(address: str) -> None:
    """The very line that `uag up` prints, found out by reflection and with the contract at hand."""
    buf = shutil.which("buf", path=os.pathsep.join((str(ROOT / ".venv/bin"), os.environ["PATH"])))
    assert buf is not None
    line = buf_curl(address)
    for command in (line, line.replace("buf curl", "buf curl --schema protos")):
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace("buf", buf, 1)],
            capture_output=True,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b'"finishReason"' in done.stdout


def test_ctrl_c_while_models_load_leaves_nothing(tiny_model: Path, tmp_path: Path) -> None:
    with up(tiny_model, tmp_path) as running:
        wait_until(lambda: len(running.children()) == 3)
        running.process.send_signal(signal.SIGINT)
        assert running.end() == 130
        assert running.said().endswith("uag up: interrupted\n")
        assert running.left_behind() == []


def test_a_dead_child_ends_all_and_sigkill_leaves_nothing(tiny_model: Path, tmp_path: Path) -> None:
    with up(tiny_model, tmp_path) as running:
        running.wait_for_words(READY)
        draft, *_ = running.children()
        draft.kill()
        assert running.end() == 1
        assert "uag up: draft_service was ended by SIGKILL\n" in running.said()
        assert running.left_behind() == []


def test_sigkill_of_the_command_leaves_nothing(tiny_model: Path, tmp_path: Path) -> None:
    with up(tiny_model, tmp_path) as running:
        running.wait_for_words("draft_service serves on")
        assert len(running.children()) == 3
        running.process.kill()
        assert running.end() == -signal.SIGKILL
        assert running.left_behind() == []


def test_a_service_that_cannot_start_ends_all(tiny_model: Path, tmp_path: Path) -> None:
    models = ("--target", str(tiny_model), "--draft", str(tiny_model))
    with running_uag(
        "up",
        *models,
        *FREE_PORTS,
        "--port",
        "0",
        output=tmp_path / "up.txt",
        changes={"UAG_DRAFT_THREADS": "many"},
    ) as running:
        assert running.end() == 1
        assert running.said().endswith(
            "uag up: draft_service ended with exit code 1: "
            "UAG_DRAFT_THREADS=many: must be a whole number\n"
        )
        assert running.left_behind() == []


def test_a_taken_port_names_the_process_before_anything_starts(tiny_model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        done = uag("up", "--target", str(tiny_model), "--draft", str(tiny_model), "--port", port,
                   *FREE_PORTS)  # fmt: skip
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert f"(pid {os.getpid()})" in done.stderr
    assert "another port with --port" in done.stderr


def test_a_model_that_is_not_there_is_one_line() -> None:
    done = uag("up", "--target", "nowhere", "--port", "0", *FREE_PORTS)
    assert done.returncode == 1
    assert done.stderr.startswith("uag up: no model 'nowhere'")
    assert not [
        process
        for process in psutil.process_iter(["cmdline"])
        if "nowhere" in (process.info["cmdline"] or ())
    ]
