"""Between messages and plain values."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.messages import decode_event, encode_request, json_line
from orchestrator.events import (
    CommittedToken,
    Degraded,
    Delta,
    Finished,
    FinishReason,
    Started,
    TokenSource,
)
from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import AnswerRequest, ChatPrompt, TextPrompt
from tests.cli.scripted_orchestrator import FINISHED, STARTED, delta
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.errors import InvalidRequestError


def test_what_is_not_given_is_not_sent() -> None:
    message = encode_request(AnswerRequest(TextPrompt("hi"), None, None))
    assert message == pb.GenerateRequest(text="hi")
    assert not message.HasField("max_new_tokens")


def test_zero_is_sent() -> None:
    message = encode_request(AnswerRequest(TextPrompt("hi"), 0, 0))
    assert message.HasField("max_new_tokens")
    assert message.speculation.HasField("draft_tokens")


def test_a_conversation() -> None:
    prompt = ChatPrompt((ChatMessage("system", "be brief"), ChatMessage("user", "hi")))
    message = encode_request(AnswerRequest(prompt, 5, None))
    assert [(item.role, item.content) for item in message.chat.messages] == [
        ("system", "be brief"),
        ("user", "hi"),
    ]
    assert not message.HasField("speculation")


def test_started() -> None:
    assert decode_event(STARTED) == Started(3, 8, 5, "target", "draft")


def test_delta() -> None:
    event = decode_event(delta("x", pb.TOKEN_SOURCE_BONUS))
    assert event == Delta((CommittedToken(7, TokenSource.BONUS, 1, "x"),))


def test_finished() -> None:
    event = decode_event(FINISHED)
    assert isinstance(event, Finished)
    assert event.reason is FinishReason.MAX_TOKENS
    assert event.speculation.accepted_lengths == (1, 0, 1)
    assert event.time.network_seconds == 0.1
    assert event.degraded is None


def test_finished_without_its_draft() -> None:
    message = pb.GenerateResponse()
    message.CopyFrom(FINISHED)
    message.finished.degraded.CopyFrom(pb.Degraded(reason="gone", since_round=2))
    event = decode_event(message)
    assert isinstance(event, Finished)
    assert event.degraded == Degraded("gone", 2)


def test_json_has_the_contract_s_names_and_one_line() -> None:
    line = json_line(delta("zwei\nZeilen ü"))
    assert "\n" not in line
    assert json.loads(line)["delta"]["text"] == "zwei\nZeilen ü"
    assert "ü" in line
    assert json.loads(json_line(STARTED))["started"]["prompt_tokens"] == 3


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("max_new_tokens", AnswerRequest(TextPrompt("x"), 1 << 31, None)),
        ("speculation.draft_tokens", AnswerRequest(TextPrompt("x"), None, -(1 << 31) - 1)),
    ],
)
def test_a_number_without_room_in_the_contract_is_named(name: str, request_: AnswerRequest) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name}: is -?2147483"):
        encode_request(request_)
