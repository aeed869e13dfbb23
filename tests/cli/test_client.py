"""The client: events of an answer, typed errors of a call."""

from __future__ import annotations

import grpc
import pytest

from orchestrator.cli.client import CallFailedError, OrchestratorClient, RequestRefusedError
from orchestrator.cli.exit_codes import ExitCode, exit_code
from orchestrator.cli.messages import decode_event
from orchestrator.request import AnswerRequest, TextPrompt
from tests.cli.scripted_orchestrator import ANSWER, ScriptedOrchestrator
from uag_common.addresses import with_real_port
from uag_common.errors import PeerUnavailableError, UagError

REQUEST = AnswerRequest(TextPrompt("hi"), None, None)


def ask(address: str, timeout_seconds: float = 20.0) -> int:
    """How many events came."""
    with OrchestratorClient(address) as client:
        return len(list(client.answer(REQUEST, timeout_seconds)))


def test_events_in_order(orchestrator: ScriptedOrchestrator) -> None:
    with OrchestratorClient(orchestrator.address) as client:
        events = list(client.answer(REQUEST, 20.0))
    assert events == [decode_event(response) for response in ANSWER]


@pytest.mark.parametrize(
    ("code", "kind", "exits"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, RequestRefusedError, ExitCode.BAD_INPUT),
        (grpc.StatusCode.OUT_OF_RANGE, RequestRefusedError, ExitCode.BAD_INPUT),
        (grpc.StatusCode.UNAVAILABLE, PeerUnavailableError, ExitCode.UNREACHABLE),
        (grpc.StatusCode.INTERNAL, CallFailedError, ExitCode.FAILED),
    ],
)
def test_a_status_is_told_as_it_is(
    orchestrator: ScriptedOrchestrator,
    code: grpc.StatusCode,
    kind: type[UagError],
    exits: ExitCode,
) -> None:
    orchestrator.error = (code, "max_new_tokens: is -1")
    with pytest.raises(kind) as told:
        ask(orchestrator.address)
    assert str(told.value) == f"{code.name}: max_new_tokens: is -1"
    assert exit_code(told.value) is exits


def test_where_nothing_answers_the_remedy_is_named() -> None:
    address = with_real_port("127.0.0.1:0")
    with pytest.raises(PeerUnavailableError, match=f"nothing answers at {address}: .*`uag up`"):
        ask(address)


def test_the_deadline_is_named(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.pause_seconds = 0.5
    with pytest.raises(CallFailedError, match=r"DEADLINE_EXCEEDED: no end after 0\.7 s"):
        ask(orchestrator.address, timeout_seconds=0.7)


def test_another_service_is_no_orchestrator(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.error = (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    with pytest.raises(CallFailedError, match="is no orchestrator"):
        ask(orchestrator.address)


def test_a_proxy_is_not_asked_for_this_machine(
    orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert ask(orchestrator.address) == len(ANSWER)
