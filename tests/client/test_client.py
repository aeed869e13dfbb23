"""The synchronous client on a real socket: answers, errors, ends."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2

from orchestrator.client import (
    AnswerStream,
    CallCancelledError,
    Client,
    ClosedError,
    ConnectError,
    DeadlineExceededError,
    InternalError,
    InvalidRequestError,
    NotYetError,
    OverloadedError,
    TokenIds,
    Tokenization,
    UnavailableError,
    chat,
)
from tests.scripted_orchestrator import (
    ANSWER,
    FINISHED,
    STARTED,
    ScriptedOrchestrator,
    delta,
    finished,
    status_details,
)
from uag.model.v1 import model_pb2
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.addresses import with_real_port

TEXT = "Once upon a tïme"
SLOW_SECONDS = 0.5
SOON_SECONDS = 10.0


def test_deltas_in_order(orchestrator: ScriptedOrchestrator) -> None:
    with Client(orchestrator.address) as client:
        deltas = list(client.generate("hi", max_new_tokens=5, temperature=0.5))
    assert [item.text for item in deltas] == ["Once ", "upon a ", "tïme"]
    (request,) = orchestrator.requests
    assert (request.text, request.max_new_tokens, request.sampling.temperature) == ("hi", 5, 0.5)


def test_a_stream_keeps_what_came(orchestrator: ScriptedOrchestrator) -> None:
    with Client(orchestrator.address) as client:
        stream = client.generate("hi")
        with pytest.raises(NotYetError):
            assert stream.started
        next(stream)
        assert stream.started.target_model_id == "target"
        assert stream.text() == "Once "
        with pytest.raises(NotYetError):
            stream.finished()
        answer = stream.answer()
    assert stream.text() == TEXT
    for told in (stream.text, stream.tokens, stream.finished):
        with pytest.raises(IndexError, match="the request has 1 answers, none has the index 1"):
            told(1)
    assert stream.finished().usage.completion_tokens == 5
    assert (answer.text, answer.finished) == (TEXT, stream.finished())
    assert answer.tokens == stream.tokens()
    assert answer.started == stream.started


def test_several_answers_come_interleaved(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (
        STARTED,
        delta("a", choice=1),
        delta("b"),
        finished(1),
        delta("c"),
        FINISHED,
    )
    with Client(orchestrator.address) as client:
        stream = client.generate("hi", n=2)
        assert [(item.choice, item.text) for item in stream] == [(1, "a"), (0, "b"), (0, "c")]
    assert [choice.text for choice in stream.answer().choices] == ["bc", "a"]


def test_an_answer_without_text_is_an_answer(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (STARTED, FINISHED)
    with Client(orchestrator.address) as client:
        assert client.generate("hi").answer().text == ""


@pytest.mark.parametrize("script", [(), ANSWER[:1], ANSWER[:3], ANSWER[1:]])
def test_a_stream_that_ends_too_early_is_an_error(
    orchestrator: ScriptedOrchestrator, script: tuple[pb.GenerateResponse, ...]
) -> None:
    orchestrator.script = script
    with Client(orchestrator.address) as client, pytest.raises(InternalError, match="the middle"):
        list(client.generate("hi"))


def test_one_of_two_answers_that_does_not_end_is_an_error(
    orchestrator: ScriptedOrchestrator,
) -> None:
    orchestrator.script = (STARTED, delta("a"), delta("b", choice=1), FINISHED)
    with Client(orchestrator.address) as client, pytest.raises(InternalError, match="the middle"):
        client.generate("hi", n=2).answer()


def test_an_event_of_a_newer_server_is_passed_over(orchestrator: ScriptedOrchestrator) -> None:
    newer = pb.GenerateResponse.FromString(b"\x22\x02\x08\x01")
    orchestrator.script = (newer, *ANSWER[:2], newer, *ANSWER[2:])
    with Client(orchestrator.address) as client:
        assert client.generate("hi").answer().text == TEXT


def test_a_whole_answer(orchestrator: ScriptedOrchestrator) -> None:
    end = pb.Choice(text="a", tokens=[pb.Token(id=1, text="a")], finished=FINISHED.finished)
    orchestrator.unary = pb.GenerateUnaryResponse(
        started=STARTED.started, choices=[end, pb.Choice(text="b", finished=finished(1).finished)]
    )
    with Client(orchestrator.address) as client:
        answer = client.complete(chat("hi"), n=2)
    assert (answer.text, [choice.text for choice in answer.choices]) == ("a", ["a", "b"])
    assert [token.id for token in answer.tokens] == [1]
    assert answer.started.prompt_tokens == 3
    assert answer.choices[1].finished.choice == 1
    assert orchestrator.requests[0].n == 2


def test_models_and_tokens(orchestrator: ScriptedOrchestrator) -> None:
    target = model_pb2.ModelDescription(model_id="large")
    orchestrator.models = pb.DescribeModelResponse(target=target)
    with Client(orchestrator.address) as client:
        assert client.describe().target.model_id == "large"
        assert client.tokenize("hü") == Tokenization((104, 252), ("h", "ü"))
        assert client.tokenize(chat("a")).ids == (97,)
        assert client.detokenize([104, 252]) == "hü"


@pytest.mark.parametrize("call", ["generate", "complete", "describe", "tokenize", "detokenize"])
def test_every_call_has_typed_errors(orchestrator: ScriptedOrchestrator, call: str) -> None:
    orchestrator.script = ()
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=3))
    orchestrator.error, orchestrator.details = (code, "full"), status_details(code, retry)
    with Client(orchestrator.address) as client, pytest.raises(OverloadedError) as refused:
        _calls(client)[call]()
    assert refused.value.retry_after == 3.0
    assert str(refused.value) == "RESOURCE_EXHAUSTED: full"


def _calls(client: Client) -> dict[str, Callable[[], object]]:
    return {
        "generate": lambda: list(client.generate("hi")),
        "complete": lambda: client.complete("hi"),
        "describe": client.describe,
        "tokenize": lambda: client.tokenize("hi"),
        "detokenize": lambda: client.detokenize([1]),
    }


def test_an_error_in_the_middle_keeps_what_came(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = ANSWER[:2]
    orchestrator.error = (grpc.StatusCode.UNAVAILABLE, "verify service: gone")
    with Client(orchestrator.address) as client:
        stream = client.generate("hi")
        with pytest.raises(UnavailableError, match="verify service: gone"):
            list(stream)
    assert stream.text() == "Once "
    # Nothing was asked for a second time.
    assert len(orchestrator.requests) == 1


def test_a_bad_request_is_refused_before_it_is_sent(orchestrator: ScriptedOrchestrator) -> None:
    with Client(orchestrator.address) as client, pytest.raises(InvalidRequestError):
        client.generate("hi", seed=-1)
    assert orchestrator.requests == []


def test_where_nothing_answers_the_address_is_named() -> None:
    address = with_real_port("127.0.0.1:0")
    with Client(address) as client:
        for call in _calls(client).values():
            with pytest.raises(ConnectError) as failed:
                call()
            assert str(failed.value) == f"cannot connect to {address}: Connection refused"


def test_a_host_without_an_address_is_named() -> None:
    with Client("no-such-host.invalid:1") as client, pytest.raises(ConnectError) as failed:
        client.describe(timeout=20)
    assert str(failed.value).startswith("cannot connect to no-such-host.invalid:1: ")


@pytest.mark.parametrize("call", ["generate", "complete"])
def test_a_deadline_ends_the_call(orchestrator: ScriptedOrchestrator, call: str) -> None:
    orchestrator.pause_seconds = SLOW_SECONDS
    with Client(orchestrator.address, timeout=0.2) as client:
        with pytest.raises(DeadlineExceededError, match=r"no end after 0\.2 s"):
            _calls(client)[call]()
        if call == "generate":
            assert orchestrator.ended.wait(SOON_SECONDS)
            assert len(list(client.generate("hi", timeout=SOON_SECONDS))) == 3


def test_a_stream_that_is_closed_cancels_its_call(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (STARTED, *(delta("word ") for _ in range(1000)))
    orchestrator.pause_seconds = 0.02
    with Client(orchestrator.address) as client:
        with client.generate("hi") as stream:
            next(stream)
        assert orchestrator.ended.wait(SOON_SECONDS)
        with pytest.raises(CallCancelledError):
            _read_all(stream)
        stream.close()


def test_a_stream_that_is_dropped_cancels_its_call(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (STARTED, *(delta("word ") for _ in range(1000)))
    orchestrator.pause_seconds = 0.02
    with Client(orchestrator.address) as client:
        for _ in client.generate("hi"):
            break
        gc.collect()
        assert orchestrator.ended.wait(SOON_SECONDS)


def test_another_thread_may_close_a_stream(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (STARTED, *(delta("word ") for _ in range(1000)))
    orchestrator.pause_seconds = 0.05
    with Client(orchestrator.address) as client:
        stream = client.generate("hi")
        threading.Timer(0.3, stream.close).start()
        began = time.monotonic()
        with pytest.raises(CallCancelledError):
            _read_all(stream)
    assert time.monotonic() - began < SOON_SECONDS
    assert stream.text().startswith("word ")


def test_closing_a_whole_answer_changes_nothing(orchestrator: ScriptedOrchestrator) -> None:
    with Client(orchestrator.address) as client, client.generate("hi") as stream:
        _read_all(stream)
        stream.close()
        assert stream.answer().text == TEXT


def test_closing_the_client_ends_what_runs(orchestrator: ScriptedOrchestrator) -> None:
    orchestrator.script = (STARTED, *(delta("word ") for _ in range(1000)))
    orchestrator.pause_seconds = 0.02
    client = Client(orchestrator.address)
    stream = client.generate("hi")
    next(stream)
    client.close()
    assert orchestrator.ended.wait(SOON_SECONDS)
    with pytest.raises(CallCancelledError):
        _read_all(stream)


@pytest.mark.parametrize("call", ["generate", "complete", "describe", "tokenize", "detokenize"])
def test_a_closed_client_says_so(orchestrator: ScriptedOrchestrator, call: str) -> None:
    client = Client(orchestrator.address)
    client.close()
    client.close()
    with pytest.raises(ClosedError, match="the client is closed"):
        _calls(client)[call]()


def test_ids_are_a_prompt(orchestrator: ScriptedOrchestrator) -> None:
    with Client(orchestrator.address) as client:
        client.generate(TokenIds((3, 0))).answer()
    assert list(orchestrator.requests[0].token_ids.ids) == [3, 0]


def test_threads_share_a_client(orchestrator: ScriptedOrchestrator) -> None:
    texts: list[str] = []
    with Client(orchestrator.address) as client:
        threads = [
            threading.Thread(target=lambda: texts.append(client.generate("hi").answer().text))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == [TEXT] * 8


def _read_all(stream: AnswerStream) -> None:
    for _ in stream:
        pass
