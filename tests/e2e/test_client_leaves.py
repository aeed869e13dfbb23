"""A client that goes away, or whose time is over: its sessions end, others go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from tests.scripted_draft import ScriptedDraft, scripted_draft
from tests.services import RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

REQUEST = pb.GenerateRequest(
    text="x",
    max_new_tokens=200,
    speculation=pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE),
)
STEP_SECONDS = 0.2


@pytest.fixture(scope="module")
def stage(llama: Path, gpt2: Path) -> Iterator[tuple[RunningServices, ScriptedDraft]]:
    with (
        scripted_draft(gpt2, vocabulary_size=600) as draft,
        running_services(llama, None, draft_address=draft.address) as services,
    ):
        draft.servicer.delay_seconds = STEP_SECONDS
        draft.servicer.script = lambda _: (300,)
        yield services, draft


def until(condition: Callable[[], bool], seconds: float = 2.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_cancelled_call_frees_its_sessions(stage: tuple[RunningServices, ScriptedDraft]) -> None:
    services, draft = stage
    with grpc.insecure_channel(services.orchestrator) as channel:
        call = orchestrator_pb2_grpc.OrchestratorStub(channel).Generate(REQUEST, timeout=60)
        for event in call:
            if event.HasField("delta") and draft.servicer.open_sessions:
                break
        assert draft.servicer.open_sessions == 1
        call.cancel()
        assert until(lambda: draft.servicer.open_sessions == 0)


def test_a_deadline_frees_its_sessions(stage: tuple[RunningServices, ScriptedDraft]) -> None:
    services, draft = stage
    with grpc.insecure_channel(services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        with pytest.raises(grpc.RpcError) as over:
            list(stub.Generate(REQUEST, timeout=4 * STEP_SECONDS))
    assert over.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert until(lambda: draft.servicer.open_sessions == 0)


def test_a_connection_that_breaks_frees_its_sessions(
    stage: tuple[RunningServices, ScriptedDraft],
) -> None:
    services, draft = stage
    channel = grpc.insecure_channel(services.orchestrator)
    call = orchestrator_pb2_grpc.OrchestratorStub(channel).Generate(REQUEST, timeout=60)
    next(call)
    assert until(lambda: draft.servicer.open_sessions == 1)
    channel.close()
    assert until(lambda: draft.servicer.open_sessions == 0)


def test_several_clients_at_once_get_what_each_gets_alone(
    stage: tuple[RunningServices, ScriptedDraft],
) -> None:
    services, draft = stage
    draft.servicer.delay_seconds = 0.0
    texts = ["The quick", "def add(", "It rained", "x"]
    requests = [pb.GenerateRequest(text=text, max_new_tokens=60) for text in texts]
    alone = [services.generate(request).ids for request in requests]
    with grpc.insecure_channel(services.orchestrator) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        calls = [stub.Generate(request, timeout=60) for request in requests]
        together = [[token.id for event in call for token in event.delta.tokens] for call in calls]
    assert together == alone
    assert until(lambda: draft.servicer.open_sessions == 0)
