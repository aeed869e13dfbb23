"""Each service as a process: its start, its health, its failures to start, its clean end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from safetensors.torch import load_file, save_file

from orchestrator.cli.supervisor import Child, ServiceSpec
from tests.services import RunningServices, free_address, running_services, wait_for_health
from uag.model.v1 import model_pb2, model_pb2_grpc
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag.verify.v1 import verify_pb2, verify_pb2_grpc

START_SECONDS = 120


@pytest.mark.parametrize(
    ("which", "name", "methods"),
    [
        ("draft", "uag.draft.v1.DraftService", ["Session"]),
        ("verify", "uag.verify.v1.VerifyService", ["Session"]),
        ("verify", "uag.model.v1.ModelService", ["DescribeModel", "GetTokenizer", "GetLoad"]),
        (
            "orchestrator",
            "uag.orchestrator.v1.Orchestrator",
            ["Generate", "GenerateUnary", "DescribeModel", "Tokenize", "Detokenize"],
        ),
    ],
)
def test_reflection_tells_the_contract(
    services: RunningServices, which: str, name: str, methods: list[str]
) -> None:
    with grpc.insecure_channel(getattr(services, which)) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert name in database.get_services()
        service = DescriptorPool(database).FindServiceByName(name)
    assert [method.name for method in service.methods] == methods


def test_health_names_each_service(services: RunningServices) -> None:
    wait_for_health(services.draft, "uag.draft.v1.DraftService", serving=True)
    wait_for_health(services.verify, "uag.verify.v1.VerifyService", serving=True)
    wait_for_health(services.orchestrator, "uag.orchestrator.v1.Orchestrator", serving=True)
    with grpc.insecure_channel(services.draft) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            stub.Check(health_pb2.HealthCheckRequest(service="no.such.Service"), timeout=5)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_description_is_that_of_the_model(services: RunningServices) -> None:
    with grpc.insecure_channel(services.verify) as channel:
        stub = model_pb2_grpc.ModelServiceStub(channel)
        model = stub.DescribeModel(model_pb2.DescribeModelRequest(), timeout=5).model
    assert model.architecture == "LlamaForCausalLM"
    assert (model.context_length, model.dtype, model.device) == (256, "float32", "cpu")
    assert model.roles.eos_ids


def test_before_it_is_ready_a_service_answers_health_and_refuses_work(llama: Path) -> None:
    address = free_address()
    process = _start("verify_service", "UAG_VERIFY_", {"listen": address, "model": str(llama)})
    try:
        wait_for_health(address, "", serving=False)
        with grpc.insecure_channel(address) as channel:
            stub = model_pb2_grpc.ModelServiceStub(channel)
            with pytest.raises(grpc.RpcError) as refused:
                stub.DescribeModel(model_pb2.DescribeModelRequest(), timeout=5)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "loading" in (refused.value.details() or "")
        wait_for_health(address, "", serving=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_sigterm_while_loading_ends_at_once(llama: Path) -> None:
    address = free_address()
    process = _start("verify_service", "UAG_VERIFY_", {"listen": address, "model": str(llama)})
    try:
        wait_for_health(address, "", serving=False)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.communicate()


def test_sigterm_lets_a_running_stream_finish(llama: Path, gpt2: Path) -> None:
    with running_services(llama, gpt2) as services:
        events: list[pb.GenerateResponse] = []
        started = threading.Event()

        def client() -> None:
            request = pb.GenerateRequest(text="def add(", max_new_tokens=150)
            with grpc.insecure_channel(services.orchestrator) as channel:
                stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
                for event in stub.Generate(request, timeout=60):
                    events.append(event)
                    if event.HasField("delta"):
                        started.set()

        thread = threading.Thread(target=client)
        thread.start()
        assert started.wait(30)
        for child in services.children.values():
            child.terminate()
        thread.join(60)
        codes = {name: child.process.wait(60) for name, child in services.children.items()}
    assert events[-1].HasField("finished")
    assert codes == {"draft": 0, "verify": 0, "orchestrator": 0}


def test_a_watcher_of_health_does_not_hold_up_the_end(llama: Path) -> None:
    with (
        running_services(llama, None) as services,
        grpc.insecure_channel(services.verify) as channel,
    ):
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        verify = services.children["verify"]
        verify.terminate()
        assert [health.status for health in watch] == [health_pb2.HealthCheckResponse.NOT_SERVING]
        assert verify.process.wait(10) == 0
        assert not complaints(verify)


def test_a_session_that_outlives_the_grace_is_cut_without_ado(llama: Path) -> None:
    with (
        running_services(llama, None, model_settings={"drain_seconds": "0.1"}) as services,
        grpc.insecure_channel(services.verify) as channel,
    ):
        model = model_pb2_grpc.ModelServiceStub(channel).DescribeModel(
            model_pb2.DescribeModelRequest()
        )
        opening = verify_pb2.Open(prompt_ids=[5], tokenizer_sha256=model.model.tokenizer_sha256)
        verify = services.children["verify"]

        def commands() -> Iterator[verify_pb2.SessionRequest]:
            yield verify_pb2.SessionRequest(open=opening)
            verify.process.wait(30)

        session = verify_pb2_grpc.VerifyServiceStub(channel).Session(commands())
        assert next(session).HasField("opened")
        verify.terminate()
        with pytest.raises(grpc.RpcError) as cut:
            next(session)
        assert cut.value.code() is grpc.StatusCode.UNAVAILABLE
        assert verify.process.wait(10) == 0
        assert not complaints(verify)


def complaints(child: Child) -> list[str]:
    """Tracebacks among the last lines of a process that has ended."""
    child._reader.join(10)
    return [line for line in child._last_lines if "Traceback" in line]


def test_services_at_each_others_address_are_told_apart(llama: Path, gpt2: Path) -> None:
    with running_services(llama, gpt2) as services:
        address = free_address()
        settings = {"draft": services.verify, "verify": services.draft}
        spec = ServiceSpec("orchestrator", "UAG_ORCHESTRATOR_", address, settings)
        services.supervisor.start(spec)
        wait_for_health(address, "", serving=False)
        with grpc.insecure_channel(address) as channel:
            stub = orchestrator_pb2_grpc.OrchestratorStub(channel)

            def refusal() -> str:
                with pytest.raises(grpc.RpcError) as refused:
                    list(stub.Generate(pb.GenerateRequest(text="x"), timeout=10))
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
                return refused.value.details() or ""

            deadline = time.monotonic() + 20
            while "is no verify service" not in (told := refusal()):
                assert time.monotonic() < deadline, told
                time.sleep(0.1)


def test_a_lost_target_is_unavailable_and_a_lost_draft_is_not(llama: Path, gpt2: Path) -> None:
    with running_services(llama, gpt2) as services:
        whole = services.generate(pb.GenerateRequest(text="The quick"))
        services.children["draft"].process.kill()
        services.wait_for_draft(serving=False)
        without = services.generate(pb.GenerateRequest(text="The quick"))
        assert without.ids == whole.ids
        assert "draft service at" in without.finished.degraded.reason
        services.children["verify"].process.kill()
        wait_for_health(services.orchestrator, "", serving=False)
        with pytest.raises(grpc.RpcError) as refused:
            services.generate(pb.GenerateRequest(text="The quick"))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def _start(module: str, prefix: str, settings: dict[str, str]) -> subprocess.Popen[str]:
    environment = {**os.environ, **{prefix + k.upper(): v for k, v in settings.items()}}
    return subprocess.Popen(
        [sys.executable, "-m", module],
        env=environment,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def _refusal(settings: dict[str, str], module: str = "verify_service") -> str:
    """The one line that a service which cannot start says."""
    prefix = {"verify_service": "UAG_VERIFY_", "orchestrator": "UAG_ORCHESTRATOR_"}[module]
    process = _start(module, prefix, {"listen": free_address(), **settings})
    try:
        _, said = process.communicate(timeout=START_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 1, said
    lines = said.strip().splitlines()
    assert len(lines) == 1, said
    return lines[0]


@pytest.fixture
def broken(llama: Path, tmp_path: Path) -> Path:
    """A copy of a good model, to be broken."""
    return Path(shutil.copytree(llama, tmp_path / "model"))


def test_no_model_given() -> None:
    assert "UAG_VERIFY_MODEL is not set" in _refusal({})


def test_an_unknown_setting_is_named() -> None:
    assert "UAG_VERIFY_MODLE" in (line := _refusal({"modle": "x"}))
    assert "UAG_VERIFY_MODEL" in line


def test_a_bad_setting_is_named() -> None:
    line = _refusal({"draft_tokens": "65"}, "orchestrator")
    assert "UAG_ORCHESTRATOR_DRAFT_TOKENS=65: must be from 0 to 64" in line


def test_no_such_model() -> None:
    line = _refusal({"model": "no-such-model"})
    assert line.startswith("verify_service: UAG_VERIFY_MODEL=no-such-model:")


@pytest.mark.parametrize("side", ["draft", "verify"])
def test_without_the_engine_it_is_told_how_to_get_it(llama: Path, side: str) -> None:
    program = (
        "import runpy, sys\n"
        "sys.modules['torch'] = None\n"
        f"runpy.run_module('{side}_service', run_name='__main__')\n"
    )
    name = f"UAG_{side.upper()}_"
    changes = {f"{name}MODEL": str(llama), f"{name}LISTEN": free_address()}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"{side}_service: torch is missing: pip install '.[engine]'\n"


def test_a_taken_port_names_the_process(llama: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = _refusal({"model": str(llama), "listen": address})
    assert "UAG_VERIFY_LISTEN" in line
    assert address in line
    assert f"(pid {os.getpid()})" in line


def test_no_weights(broken: Path) -> None:
    (broken / "model.safetensors").unlink()
    assert "safetensors" in _refusal({"model": str(broken)})


def test_corrupt_weights(broken: Path) -> None:
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    assert "model.safetensors" in _refusal({"model": str(broken)})


def test_weights_that_lack_a_tensor(broken: Path) -> None:
    """transformers would go on with random numbers in its place."""
    tensors = load_file(broken / "model.safetensors")
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    assert "lack model.layers.0.mlp.up_proj.weight" in _refusal({"model": str(broken)})


def test_weights_that_are_no_numbers(broken: Path) -> None:
    tensors = load_file(broken / "model.safetensors")
    tensors["model.norm.weight"][:] = float("nan")
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    assert "no numbers in a test step" in _refusal({"model": str(broken)})


def test_a_tokenizer_that_is_no_tokenizer(broken: Path) -> None:
    (broken / "tokenizer.json").write_text("{")
    assert "UAG_VERIFY_MODEL" in _refusal({"model": str(broken)})


@pytest.mark.parametrize("eos", [-1, 10**9, "a", [[0]], 1.5, True])
def test_an_eos_that_is_no_id(broken: Path, eos: object) -> None:
    for name in ("generation_config.json", "config.json"):
        _edit(broken / name, change={"eos_token_id": eos})
    _edit(broken / "tokenizer_config.json", remove=("eos_token",))
    assert "eos" in _refusal({"model": str(broken)}).lower()


def test_a_tokenizer_without_an_eos(broken: Path) -> None:
    for name, keys in {
        "generation_config.json": ("eos_token_id",),
        "config.json": ("eos_token_id",),
        "tokenizer_config.json": ("eos_token",),
    }.items():
        _edit(broken / name, remove=keys)
    assert "names no EOS" in _refusal({"model": str(broken)})


def test_a_vocabulary_larger_than_the_embedding(broken: Path, gpt2: Path) -> None:
    shutil.copy(gpt2 / "tokenizer.json", broken / "tokenizer.json")
    assert "do not belong together" in _refusal({"model": str(broken)})


def test_no_tokenizer(broken: Path) -> None:
    (broken / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in _refusal({"model": str(broken)})


def test_a_model_that_is_no_language_model(broken: Path) -> None:
    _edit(broken / "config.json", change={"model_type": "vit", "architectures": ["ViTModel"]})
    assert "no causal language model" in _refusal({"model": str(broken)})


def test_a_device_that_is_not_there(llama: Path) -> None:
    assert "cuda:7" in _refusal({"model": str(llama), "device": "cuda:7"})


def test_a_target_too_big_for_memory(broken: Path) -> None:
    """Only its header is large: the check comes before any weight is read."""
    weights = broken / "model.safetensors"
    size = 10**13
    header = {"huge": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    packed = json.dumps(header).encode()
    with weights.open("wb") as file:
        file.write(len(packed).to_bytes(8, "little") + packed)
        file.truncate(8 + len(packed) + size)
    line = _refusal({"model": str(broken)})
    assert "GB of memory" in line


def _edit(
    path: Path, remove: tuple[str, ...] = (), change: dict[str, object] | None = None
) -> None:
    content = json.loads(path.read_text()) | (change or {})
    path.write_text(json.dumps({k: v for k, v in content.items() if k not in remove}))
