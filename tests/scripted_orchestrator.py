"""An orchestrator that says what a test wrote down, on a real port. No model, no peer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from google.protobuf.message import Message
from google.rpc import status_pb2

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


def delta(
    text: str, source: pb.TokenSource = pb.TOKEN_SOURCE_TARGET, choice: int = 0
) -> pb.GenerateResponse:
    token = pb.Token(id=7, source=source, round=1, text=text)
    return pb.GenerateResponse(delta=pb.Delta(text=text, tokens=[token], choice=choice))


def finished(choice: int) -> pb.GenerateResponse:
    """The end of another answer than the first."""
    message = pb.GenerateResponse()
    message.CopyFrom(FINISHED)
    message.finished.choice = choice
    return message


ANSWER = (
    STARTED,
    delta("Once "),
    delta("upon a ", pb.TOKEN_SOURCE_DRAFT),
    delta("tïme"),
    FINISHED,
)


def status_details(code: grpc.StatusCode, *details: Message) -> bytes:
    """The value of `grpc-status-details-bin` for a status with these details."""
    number: int = code.value[0]
    status = status_pb2.Status(code=number, message="told elsewhere")
    for detail in details:
        status.details.add().Pack(detail)
    content: bytes = status.SerializeToString()
    return content


@dataclass(slots=True)
class ScriptedOrchestrator(orchestrator_pb2_grpc.OrchestratorServicer):
    """Answers every request with `script`, then with the status `error` if there is one, which
    `details` go with. The other calls have an answer each, or the same error."""

    script: Sequence[pb.GenerateResponse] = ANSWER
    unary: pb.GenerateUnaryResponse = field(default_factory=pb.GenerateUnaryResponse)
    models: pb.DescribeModelResponse = field(default_factory=pb.DescribeModelResponse)
    error: tuple[grpc.StatusCode, str] | None = None
    details: bytes | None = None
    pause_seconds: float = 0.0
    credentials: grpc.ServerCredentials | None = None
    requests: list[Any] = field(default_factory=list)
    metadata: list[dict[str, str | bytes]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when a call is over, however it ended."""
    address: str = ""
    server: grpc.Server | None = None

    def Generate(  # noqa: N802 - named by the contract
        self, request: pb.GenerateRequest, context: Any
    ) -> Iterator[pb.GenerateResponse]:
        self._note(request, context)
        for response in self.script:
            time.sleep(self.pause_seconds)
            yield response
        self._abort(context)

    def GenerateUnary(  # noqa: N802
        self, request: pb.GenerateRequest, context: Any
    ) -> pb.GenerateUnaryResponse:
        self._note(request, context)
        time.sleep(self.pause_seconds)
        self._abort(context)
        return self.unary

    def DescribeModel(  # noqa: N802
        self, request: pb.DescribeModelRequest, context: Any
    ) -> pb.DescribeModelResponse:
        self._note(request, context)
        self._abort(context)
        return self.models

    def Tokenize(  # noqa: N802
        self, request: pb.TokenizeRequest, context: Any
    ) -> pb.TokenizeResponse:
        """Characters for tokens."""
        self._note(request, context)
        self._abort(context)
        text = request.text or "".join(turn.content for turn in request.chat.messages)
        return pb.TokenizeResponse(ids=map(ord, text), texts=text)

    def Detokenize(  # noqa: N802
        self, request: pb.DetokenizeRequest, context: Any
    ) -> pb.DetokenizeResponse:
        self._note(request, context)
        self._abort(context)
        return pb.DetokenizeResponse(text="".join(map(chr, request.ids)))

    def _note(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        self.metadata.append({pair.key: pair.value for pair in context.invocation_metadata()})
        context.add_callback(self.ended.set)

    def _abort(self, context: Any) -> None:
        if self.details is not None:
            context.set_trailing_metadata((("grpc-status-details-bin", self.details),))
        if self.error is not None:
            context.abort(*self.error)

    def __enter__(self) -> Self:
        self.server = grpc.server(ThreadPoolExecutor(max_workers=4))
        orchestrator_pb2_grpc.add_OrchestratorServicer_to_server(self, self.server)
        if self.credentials is None:
            self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        else:
            port = self.server.add_secure_port("127.0.0.1:0", self.credentials)
            self.address = f"localhost:{port}"
        self.server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.server is not None:
            self.server.stop(grace=None).wait()
