"""A target that several processes share answers as one process does, and they end together."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import grpc
import psutil
import pytest
from transformers import AutoConfig, LlamaForCausalLM

from orchestrator.cli.services import shared_threads
from orchestrator.cli.supervisor import Child, ServiceDiedError, ServiceSpec, Supervisor
from tests.reference import Reference
from tests.services import RunningServices, free_address, running_services, wait_for_health
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.rpc.health import READY

QUICKLY = 10.0
START_SECONDS = 120.0
IDLE_SECONDS = 2.0
FOX = "The quick brown fox"
LONG = pb.GenerateRequest(
    text=FOX, max_new_tokens=200, stopping=pb.StoppingOptions(ignore_eos=True)
)
REQUESTS = (
    pb.GenerateRequest(text=FOX, max_new_tokens=40),
    pb.GenerateRequest(text="def add(left", max_new_tokens=40),
    pb.GenerateRequest(
        text="It rained", max_new_tokens=40, sampling=pb.SamplingOptions(temperature=1.2, seed=5)
    ),
    pb.GenerateRequest(
        text="x", max_new_tokens=30, n=3, sampling=pb.SamplingOptions(temperature=1.0, seed=2)
    ),
)


@pytest.fixture(autouse=True)
def no_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of several processes is on them wherever there are any."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def followers(service: Child) -> list[psutil.Process]:
    """The other processes of the model."""
    children = psutil.Process(service.process.pid).children()
    return [child for child in children if child.cmdline()[-1] == service.spec.module]


def ended(service: Child, others: list[psutil.Process], seconds: float = QUICKLY) -> int:
    """The exit code of the service, which nobody outlives."""
    code = service.process.wait(seconds)
    _, left = psutil.wait_procs(others, timeout=QUICKLY)
    assert not left
    return code


@contextmanager
def alone(model: Path, size: int, **settings: str) -> Iterator[Child]:
    """A verify service that loads a model in several processes."""
    given = {"model": str(model), "tensor_parallel": str(size), **shared_threads(), **settings}
    spec = ServiceSpec("verify_service", "UAG_VERIFY_", free_address(), given)
    with Supervisor(sys.stderr) as supervisor:
        yield supervisor.start(spec)


def until_ready(service: Child) -> None:
    wait_for_health(service.spec.address, READY, True, START_SECONDS)


def reason(service: Child) -> str:
    """Why it has ended: the last that it said."""
    with pytest.raises(ServiceDiedError) as died:
        service.check()
    return str(died.value)


def test_two_processes_answer_as_one_and_stop_cleanly(
    services: RunningServices, llama: Path
) -> None:
    with running_services(
        llama,
        None,
        draft_address=services.draft,
        verify_settings={"tensor_parallel": "2"},
    ) as split:
        with ThreadPoolExecutor(len(REQUESTS)) as together:
            answers = list(together.map(split.answers, REQUESTS))
        for request, answer in zip(REQUESTS, answers, strict=True):
            assert answer.ids == services.answers(request).ids
        verify = split.children["verify"]
        (follower,) = others = followers(verify)
        _check_rest(follower)
        verify.terminate()
        assert ended(verify, others) == 0


def _check_rest(follower: psutil.Process) -> None:
    """It costs next to nothing while there is nothing to do, and only this machine reaches it."""
    before = sum(follower.cpu_times()[:2])
    time.sleep(IDLE_SECONDS)
    assert sum(follower.cpu_times()[:2]) - before < IDLE_SECONDS / 10
    connections = follower.net_connections(kind="inet")
    assert {each.laddr.ip for each in connections} == {"127.0.0.1"}


def test_a_process_that_is_killed_in_a_pass_ends_all_for_that_reason(llama: Path) -> None:
    with running_services(llama, None, verify_settings={"tensor_parallel": "2"}) as services:
        verify = services.children["verify"]
        (follower,) = others = followers(verify)
        threading.Timer(0.5, follower.kill).start()
        with pytest.raises(grpc.RpcError) as failed:
            _ask_for_ever(services)
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        assert ended(verify, others) == 1
        assert "rank 1 of 2 was ended by SIGKILL" in reason(verify)
        assert len([line for line in verify._last_lines if '"INFO"' not in line]) == 1


def _ask_for_ever(services: RunningServices) -> NoReturn:
    while True:
        services.generate(LONG)


@pytest.fixture(scope="module")
def divisible(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with four heads of keys and values, and weights that nobody has taught."""
    folder = tmp_path_factory.mktemp("models") / "divisible"
    shutil.copytree(llama, folder)
    changes = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4}
    config = AutoConfig.from_pretrained(llama, **changes, head_dim=8, initializer_range=0.2)
    network = LlamaForCausalLM(config)
    network.generation_config.eos_token_id = config.eos_token_id
    network.save_pretrained(folder)
    return folder


@pytest.mark.full
def test_four_processes_answer_as_one(divisible: Path) -> None:
    reference = Reference(divisible)
    with running_services(divisible, None, verify_settings={"tensor_parallel": "4"}) as split:
        assert len(followers(split.children["verify"])) == 3
        for text in (FOX, "def add(left"):
            request = pb.GenerateRequest(text=text, max_new_tokens=40)
            expected = reference.answer(reference.text_prompt(text), 40)
            assert split.generate(request).ids == expected


@pytest.mark.full
def test_a_process_that_hangs_ends_all(llama: Path) -> None:
    settings = {"tensor_parallel": "2", "stalled_seconds": "2"}
    with running_services(llama, None, verify_settings=settings) as services:
        verify = services.children["verify"]
        (follower,) = others = followers(verify)
        follower.suspend()
        with pytest.raises(grpc.RpcError) as failed:
            services.generate(LONG)
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        assert ended(verify, others) == 1
        assert "a step of 2 processes runs for" in reason(verify)


@pytest.mark.full
@pytest.mark.parametrize("seconds", [1.0, 4.0, 8.0])
def test_a_process_that_is_killed_while_it_loads_ends_all(llama: Path, seconds: float) -> None:
    with alone(llama, 2) as service:
        while not (others := followers(service)):
            time.sleep(0.05)
        time.sleep(seconds)
        others[0].kill()
        assert ended(service, others) == 1
        assert "rank 1 of 2 was ended by SIGKILL" in reason(service)


@pytest.mark.full
def test_nobody_outlives_a_leader_that_is_killed(llama: Path) -> None:
    with alone(llama, 2) as service:
        until_ready(service)
        others = followers(service)
        service.kill()
        assert ended(service, others) == -signal.SIGKILL


@pytest.mark.full
def test_a_stop_while_it_loads_is_clean(llama: Path) -> None:
    with alone(llama, 2) as service:
        while not (others := followers(service)):
            time.sleep(0.05)
        time.sleep(2)
        service.terminate()
        assert ended(service, others) == 0


@pytest.mark.full
def test_heads_that_do_not_divide_are_told_at_the_start(llama: Path) -> None:
    with alone(llama, 4) as service:
        others = followers(service)
        assert ended(service, others, START_SECONDS) == 1
        told = reason(service)
        assert "its 2 heads of keys and values do not divide by TENSOR_PARALLEL=4" in told
        assert "right are 1, 2" in told
        assert len(service._last_lines) == 1


@pytest.mark.full
def test_a_model_that_nobody_can_split_is_told_at_the_start(gpt2: Path) -> None:
    with alone(gpt2, 2) as service:
        assert ended(service, [], START_SECONDS) == 1
        assert "no plan to split a gpt2 over processes" in reason(service)


@pytest.mark.full
def test_torchrun_may_start_them(divisible: Path) -> None:
    address = free_address()
    settings = {"UAG_VERIFY_MODEL": str(divisible), "UAG_VERIFY_LISTEN": address}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4"]
    process = subprocess.Popen([*torchrun, "-m", "verify_service"], env={**os.environ, **settings})
    try:
        wait_for_health(address, READY, True, START_SECONDS)
        ranks = psutil.Process(process.pid).children()
        assert len(ranks) == 4
        (leader,) = (rank for rank in ranks if rank.environ()["RANK"] == "0")
        leader.terminate()
        assert process.wait(QUICKLY) == 0
    finally:
        process.terminate()
        process.wait()
