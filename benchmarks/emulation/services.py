"""Runs an emulated pair and a real orchestrator as processes on free ports, and asks them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.emulation.recordings import recordings
from benchmarks.emulation.scenario import Scenario
from orchestrator.cli.services import DEFAULT_PAIR
from orchestrator.cli.supervisor import STOP_SECONDS, Child, ServiceSpec, Supervisor
from tests.services import Answer, RunningServices, free_address
from uag.orchestrator.v1 import orchestrator_pb2 as pb


def emulated_request(
    scenario: Scenario, speculation: pb.SpeculationOptions, tokens: int | None = None
) -> pb.GenerateRequest:
    """Plays a recording: all of it, or so many tokens, for which it may begin again."""
    recording = recordings()[scenario.recording]
    content = f"{scenario.line}\n{recording.prompt}"
    return pb.GenerateRequest(
        chat=pb.Chat(messages=[pb.ChatMessage(role="user", content=content)]),
        max_new_tokens=tokens or len(recording.ids),
        speculation=speculation,
    )


@dataclass(slots=True)
class EmulatedServices:
    """A running emulation."""

    draft: Child
    verify: Child
    orchestrator: Child
    supervisor: Supervisor

    def generate(self, request: pb.GenerateRequest) -> Answer:
        return self._running.generate(request)

    def wait_ready(self) -> None:
        """Until the orchestrator serves and has its draft."""
        self.supervisor.wait_serving(self.orchestrator)
        self._running.wait_for_draft()

    def renew_orchestrator(self) -> None:
        """Starts another one in its place, which has measured nothing yet."""
        self.orchestrator.terminate()
        self.orchestrator.wait(time.monotonic() + STOP_SECONDS)
        self.supervisor.children.remove(self.orchestrator)
        self.orchestrator = self.supervisor.start(self.orchestrator.spec)
        self.wait_ready()

    @property
    def _running(self) -> RunningServices:
        return RunningServices(
            self.orchestrator.spec.address,
            self.draft.spec.address,
            self.verify.spec.address,
            self.supervisor,
        )


@contextmanager
def emulated_services(
    target: str = DEFAULT_PAIR.target, draft: str = DEFAULT_PAIR.draft
) -> Iterator[EmulatedServices]:
    """Both models are emulated, by the names that `recorded.json` has for them."""
    draft_at, verify_at, orchestrator_at = free_address(), free_address(), free_address()
    with Supervisor(sys.stderr) as supervisor:
        services = EmulatedServices(
            supervisor.start(_spec("benchmarks.emulation.draft", "DRAFT", draft_at, draft)),
            supervisor.start(_spec("benchmarks.emulation.verify", "VERIFY", verify_at, target)),
            supervisor.start(
                ServiceSpec(
                    "orchestrator",
                    "UAG_ORCHESTRATOR_",
                    orchestrator_at,
                    {"draft": draft_at, "verify": verify_at, "log_level": "error"},
                )
            ),
            supervisor,
        )
        services.wait_ready()
        yield services


def _spec(module: str, part: str, address: str, model: str) -> ServiceSpec:
    return ServiceSpec(module, f"UAG_{part}_", address, {"model": model, "log_level": "error"})
