"""Whenever a client leaves, both services have its sessions no longer, by their own count."""

from __future__ import annotations

import time

import grpc
import pytest

from tests.fuzz.runner import open_sessions
from tests.services import RunningServices, model_load
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

LONG = pb.GenerateRequest(
    text="x",
    max_new_tokens=200,
    stopping=pb.StoppingOptions(ignore_eos=True),
    speculation=pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE),
)
SAMPLED = pb.SamplingOptions(temperature=1.0, seed=1)
THREE = pb.GenerateRequest(
    text="x", max_new_tokens=200, n=3, sampling=SAMPLED, stopping=LONG.stopping
)
FREED_SECONDS = 5.0
"""A round and the way of its end to two services, on a machine that is busy with other things."""


def freed(services: RunningServices) -> bool:
    deadline = time.monotonic() + FREED_SECONDS
    while time.monotonic() < deadline:
        loads = [model_load(address) for address in (services.draft, services.verify)]
        # The step that ran when a session ended is finished after it.
        if not any(load.open_sessions or load.pending_steps for load in loads):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("request_", [LONG, THREE], ids=["one answer", "three answers"])
@pytest.mark.parametrize("messages", [0, 1, 2, 3, 5, 9])
@pytest.mark.parametrize("drop", [False, True], ids=["cancels", "drops the connection"])
def test_a_client_that_leaves(
    services: RunningServices, request_: pb.GenerateRequest, messages: int, drop: bool
) -> None:
    channel = grpc.insecure_channel(services.orchestrator)
    call = orchestrator_pb2_grpc.OrchestratorStub(channel).Generate(request_, timeout=60)
    for _ in range(messages):
        next(call)
    if messages:
        assert open_sessions(services) > 0
    if drop:
        channel.close()
    else:
        call.cancel()
    assert freed(services)
    channel.close()


@pytest.mark.parametrize("milliseconds", [1, 4, 16, 64, 256])
@pytest.mark.parametrize("unary", [False, True], ids=["stream", "unary"])
def test_a_deadline(services: RunningServices, milliseconds: int, unary: bool) -> None:
    with grpc.insecure_channel(services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        call = stub.GenerateUnary if unary else lambda *a, **k: list(stub.Generate(*a, **k))
        with pytest.raises(grpc.RpcError) as over:
            call(THREE, timeout=milliseconds / 1000)
    assert over.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert freed(services)


def test_an_answer_that_ends_by_itself(services: RunningServices) -> None:
    before = [model_load(address).kept_prefixes for address in (services.draft, services.verify)]
    request = pb.GenerateRequest(text="The quick", max_new_tokens=9, cache_salt="kept")
    request.speculation.mode = pb.SPECULATION_MODE_FORCE
    services.answers(request)
    assert freed(services)
    after = [model_load(address).kept_prefixes for address in (services.draft, services.verify)]
    assert after == [count + 1 for count in before]
