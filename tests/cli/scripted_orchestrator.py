"""An orchestrator that says what a test wrote down, on a real port. No model, no peer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

import grpc

from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

STARTED = pb.GenerateResponse(
    started=pb.Started(
        prompt_tokens=3,
        max_new_tokens=8,
        draft_tokens=5,
        target_model_id="target",
        draft_model_id="draft",
    )
)
FINISHED = pb.GenerateResponse(
    finished=pb.Finished(
        finish_reason=pb.FINISH_REASON_MAX_TOKENS,
        usage=pb.Usage(prompt_tokens=3, completion_tokens=5),
        speculation=pb.SpeculationFigures(
            rounds=2,
            draft_tokens_proposed=10,
            candidates_proposed=9,
            candidates_examined=4,
            candidates_accepted=2,
            accepted_lengths=[1, 0, 1],
        ),
        time=pb.TimeFigures(
            total_seconds=2.0,
            first_token_seconds=0.25,
            prefill_seconds=0.2,
            draft_seconds=1.0,
            convert_seconds=0.1,
            verify_seconds=0.5,
            network_seconds=0.1,
        ),
    )
)


def delta(text: str, source: pb.TokenSource = pb.TOKEN_SOURCE_TARGET) -> pb.GenerateResponse:
    token = pb.Token(id=7, source=source, round=1, text=text)
    return pb.GenerateResponse(delta=pb.Delta(text=text, tokens=[token]))


ANSWER = (
    STARTED,
    delta("Once "),
    delta("upon a ", pb.TOKEN_SOURCE_DRAFT),
    delta("tïme"),
    FINISHED,
)


@dataclass(slots=True)
class ScriptedOrchestrator(orchestrator_pb2_grpc.OrchestratorServicer):
    """Answers every request with `script`, then with the status `error` if there is one."""

    script: Sequence[pb.GenerateResponse] = ANSWER
    error: tuple[grpc.StatusCode, str] | None = None
    pause_seconds: float = 0.0
    requests: list[pb.GenerateRequest] = field(default_factory=list)
    address: str = ""
    server: grpc.Server | None = None

    def Generate(  # noqa: N802 - named by the contract
        self, request: pb.GenerateRequest, context: Any
    ) -> Iterator[pb.GenerateResponse]:
        self.requests.append(request)
        for response in self.script:
            time.sleep(self.pause_seconds)
            yield response
        if self.error is not None:
            context.abort(*self.error)

    def __enter__(self) -> Self:
        self.server = grpc.server(ThreadPoolExecutor(max_workers=2))
        orchestrator_pb2_grpc.add_OrchestratorServicer_to_server(self, self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.server is not None:
            self.server.stop(grace=None).wait()
