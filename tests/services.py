"""Runs the real services as processes on free ports, for tests over real sockets."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from orchestrator.cli.services import shared_threads
from orchestrator.cli.supervisor import Child, ServiceSpec, Supervisor
from uag.model.v1 import model_pb2, model_pb2_grpc
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

DRAFT_HEALTH = "uag.draft.v1.DraftService"
NO_SETTINGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer as a client saw it."""

    text: str
    tokens: tuple[pb.Token, ...]
    finished: pb.Finished
    started: pb.Started
    deltas: tuple[pb.Delta, ...]

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers of a request as a client saw them, in the order of their indices."""

    started: pb.Started
    tokens: tuple[tuple[pb.Token, ...], ...]
    texts: tuple[str, ...]
    finished: tuple[pb.Finished, ...]

    @classmethod
    def of(cls, events: Sequence[pb.GenerateResponse]) -> Answers:
        first, *rest = events
        deltas = [event.delta for event in rest if event.HasField("delta")]
        finished = [event.finished for event in rest if event.HasField("finished")]
        finished.sort(key=lambda end: end.choice)
        by_choice = [[d for d in deltas if d.choice == end.choice] for end in finished]
        return cls(
            started=first.started,
            tokens=tuple(tuple(t for d in ds for t in d.tokens) for ds in by_choice),
            texts=tuple("".join(d.text for d in ds) for ds in by_choice),
            finished=tuple(finished),
        )

    @property
    def ids(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(token.id for token in tokens) for tokens in self.tokens)


@dataclass(frozen=True, slots=True)
class RunningServices:
    """Addresses and processes of a running set."""

    orchestrator: str
    draft: str
    verify: str
    supervisor: Supervisor
    children: Mapping[str, Child] = field(default_factory=dict)

    def generate(self, request: pb.GenerateRequest, timeout: float = 120) -> Answer:
        with grpc.insecure_channel(self.orchestrator) as channel:
            stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
            events = list(stub.Generate(request, timeout=timeout))
        deltas = tuple(event.delta for event in events if event.HasField("delta"))
        return Answer(
            text="".join(delta.text for delta in deltas),
            tokens=tuple(token for delta in deltas for token in delta.tokens),
            finished=events[-1].finished,
            started=events[0].started,
            deltas=deltas,
        )

    def answers(self, request: pb.GenerateRequest, timeout: float = 300) -> Answers:
        with grpc.insecure_channel(self.orchestrator) as channel:
            stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
            return Answers.of(list(stub.Generate(request, timeout=timeout)))

    def wait_for_draft(self, serving: bool = True) -> None:
        """Until the orchestrator has (or has lost) its draft."""
        wait_for_health(self.orchestrator, DRAFT_HEALTH, serving)


def wait_for_health(address: str, service: str, serving: bool, seconds: float = 60) -> None:
    wanted = health_pb2.HealthCheckResponse.SERVING
    deadline = time.monotonic() + seconds
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while time.monotonic() < deadline:
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
                if (answer.status == wanted) is serving:
                    return
            except grpc.RpcError:
                pass
            time.sleep(0.05)
    raise TimeoutError(f"{service} at {address} did not become {serving} within {seconds} s")


def model_load(address: str) -> model_pb2.GetLoadResponse:
    """What a draft or verify service holds now, by its own count."""
    with grpc.insecure_channel(address) as channel:
        stub = model_pb2_grpc.ModelServiceStub(channel)
        load: model_pb2.GetLoadResponse = stub.GetLoad(model_pb2.GetLoadRequest(), timeout=10)
        return load


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def running_services(
    target: Path | str,
    draft: Path | str | None,
    *,
    model_settings: Mapping[str, str] = NO_SETTINGS,
    verify_settings: Mapping[str, str] = NO_SETTINGS,
    draft_settings: Mapping[str, str] = NO_SETTINGS,
    orchestrator_settings: Mapping[str, str] = NO_SETTINGS,
    draft_address: str | None = None,
) -> Iterator[RunningServices]:
    """Target and orchestrator, and a draft if one is given; `draft_address` names a draft service
    that the test runs itself. `model_settings` are for both model services."""
    draft_at = draft_address or free_address()
    verify_at, orchestrator_at = free_address(), free_address()
    model_settings = {**shared_threads(), **model_settings}
    specs = {
        "verify": ServiceSpec(
            "verify_service",
            "UAG_VERIFY_",
            verify_at,
            {"model": str(target), **model_settings, **verify_settings},
        ),
        "orchestrator": ServiceSpec(
            "orchestrator",
            "UAG_ORCHESTRATOR_",
            orchestrator_at,
            {"draft": draft_at, "verify": verify_at, **orchestrator_settings},
        ),
    }
    if draft is not None:
        specs["draft"] = ServiceSpec(
            "draft_service",
            "UAG_DRAFT_",
            draft_at,
            {"model": str(draft), **model_settings, **draft_settings},
        )
    with Supervisor(sys.stderr) as supervisor:
        children = {name: supervisor.start(spec) for name, spec in specs.items()}
        for child in children.values():
            supervisor.wait_serving(child)
        services = RunningServices(orchestrator_at, draft_at, verify_at, supervisor, children)
        if draft is not None or draft_address is not None:
            services.wait_for_draft()
        yield services


@contextmanager
def running_draft(model: Path | str, address: str) -> Iterator[None]:
    """A draft service alone, with the settings that `running_services` gives to one."""
    settings = {"model": str(model), **shared_threads()}
    spec = ServiceSpec("draft_service", "UAG_DRAFT_", address, settings)
    with Supervisor(sys.stderr) as supervisor:
        supervisor.wait_serving(supervisor.start(spec))
        yield
