"""A verify service that breaks the contract: a typed error for the client, never nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc
import pytest

from orchestrator.cli.supervisor import ServiceSpec, Supervisor
from tests.services import free_address, wait_for_health
from tests.threaded_server import TokenizerOnly, threaded_server
from uag.orchestrator.v1 import orchestrator_pb2 as orchestrator
from uag.orchestrator.v1 import orchestrator_pb2_grpc
from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.rpc.metadata import Context

Answer = Callable[[pb.SessionRequest], pb.SessionResponse | None]
FIRST = pb.SessionResponse(opened=pb.Opened(first=pb.ChosenToken(id=300)))


@dataclass
class ScriptedVerify(verify_pb2_grpc.VerifyServiceServicer):
    """Answers by script; None ends the stream."""

    answer: Answer = field(default=lambda _: None)

    async def Session(  # noqa: N802 - named by the contract
        self,
        request_iterator: AsyncIterator[pb.SessionRequest],
        context: Context,  # noqa: ARG002
    ) -> AsyncIterator[pb.SessionResponse]:
        async for request in request_iterator:
            response = self.answer(request)
            if response is None:
                return
            yield response


@pytest.fixture(scope="module")
def stage(llama: Path) -> Iterator[tuple[ScriptedVerify, str]]:
    servicer, address = ScriptedVerify(), free_address()
    model = TokenizerOnly.read(llama, vocabulary_size=600)
    add = partial(verify_pb2_grpc.add_VerifyServiceServicer_to_server, servicer)
    with threaded_server("uag.verify.v1.VerifyService", model, add) as verify, Supervisor() as run:
        settings = {"draft": free_address(), "verify": verify}
        run.wait_serving(
            run.start(ServiceSpec("orchestrator", "UAG_ORCHESTRATOR_", address, settings))
        )
        wait_for_health(address, "", serving=True)
        yield servicer, address


def verified(round_number: int, accepted: int, token_id: int) -> pb.SessionResponse:
    chosen = pb.ChosenToken(id=token_id)
    return pb.SessionResponse(
        verified=pb.Verified(round=round_number, accepted=accepted, next=chosen)
    )


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda _: None, grpc.StatusCode.UNAVAILABLE),
        (lambda _: pb.SessionResponse(), grpc.StatusCode.INTERNAL),
        (lambda _: verified(0, 0, 300), grpc.StatusCode.INTERNAL),
        (lambda r: FIRST if r.HasField("open") else None, grpc.StatusCode.UNAVAILABLE),
        (lambda _: FIRST, grpc.StatusCode.INTERNAL),
        (
            lambda r: FIRST if r.HasField("open") else verified(r.verify.round, 9, 300),
            grpc.StatusCode.INTERNAL,
        ),
        (
            lambda r: FIRST if r.HasField("open") else verified(r.verify.round + 1, 0, 300),
            grpc.StatusCode.INTERNAL,
        ),
        (
            lambda r: FIRST if r.HasField("open") else verified(r.verify.round, 0, 600),
            grpc.StatusCode.INTERNAL,
        ),
    ],
    ids=[
        "ends",
        "empty",
        "wrong kind",
        "ends later",
        "opened again",
        "too many",
        "other round",
        "foreign id",
    ],
)
def test_the_client_gets_a_typed_error(
    stage: tuple[ScriptedVerify, str], answer: Answer, code: grpc.StatusCode
) -> None:
    servicer, address = stage
    servicer.answer = answer
    with grpc.insecure_channel(address) as channel:
        stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
        request = orchestrator.GenerateRequest(text="x", max_new_tokens=5)
        with pytest.raises(grpc.RpcError) as failed:
            list(stub.Generate(request, timeout=20))
    assert failed.value.code() is code
    assert "verify service at" in (failed.value.details() or "")
