"""From messages to plain values, those of a newer server too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

import pytest

from orchestrator.client import (
    Degraded,
    Delta,
    Finished,
    FinishReason,
    Models,
    PromptToken,
    SpeculationFigures,
    Started,
    TimeFigures,
    Token,
    Tokenization,
    TokenSource,
    TopToken,
    Usage,
)
from orchestrator.client.response import decode_event, decode_models, decode_tokenization
from tests.scripted_orchestrator import FINISHED, delta
from uag.model.v1 import model_pb2
from uag.orchestrator.v1 import orchestrator_pb2 as pb


def finished(**changes: Any) -> Finished:
    message = pb.GenerateResponse()
    message.CopyFrom(FINISHED)
    message.finished.MergeFrom(pb.Finished(**changes))
    event = decode_event(message)
    assert isinstance(event, Finished)
    return event


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (pb.Started, Started),
        (pb.PromptToken, PromptToken),
        (pb.Token, Token),
        (pb.TopToken, TopToken),
        (pb.Delta, Delta),
        (pb.Usage, Usage),
        (pb.SpeculationFigures, SpeculationFigures),
        (pb.TimeFigures, TimeFigures),
        (pb.Degraded, Degraded),
        (pb.DescribeModelResponse, Models),
        (pb.TokenizeResponse, Tokenization),
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_field_of_the_contract_has_its_value(message: Any, kind: Any) -> None:
    assert {field.name for field in fields(kind)} == set(message.DESCRIPTOR.fields_by_name)


def test_every_field_of_the_end_has_its_value() -> None:
    names = {field.name for field in fields(Finished)} - {"reason"} | {"finish_reason"}
    assert names == set(pb.Finished.DESCRIPTOR.fields_by_name)


def test_started() -> None:
    message = pb.Started(
        prompt_tokens=3,
        max_new_tokens=8,
        draft_tokens=5,
        lookup_tokens=7,
        target_model_id="target",
        draft_model_id="draft",
        cached_tokens=2,
        parameters=pb.GenerateRequest(sampling=pb.SamplingOptions(seed=9), request_id="r"),
        trace_id="ab" * 16,
        prompt=[pb.PromptToken(id=4, logprob=-0.5, top=[pb.TopToken(id=5, logprob=0, text="a")])],
    )
    assert decode_event(pb.GenerateResponse(started=message)) == Started(
        prompt_tokens=3,
        cached_tokens=2,
        max_new_tokens=8,
        draft_tokens=5,
        lookup_tokens=7,
        target_model_id="target",
        draft_model_id="draft",
        parameters={"seed": 9, "request_id": "r"},
        trace_id="ab" * 16,
        prompt=(PromptToken(4, -0.5, (TopToken(5, 0.0, "a"),)),),
    )


def test_delta() -> None:
    event = decode_event(delta("x", pb.TOKEN_SOURCE_BONUS, choice=2))
    assert event == Delta(2, "x", (Token(7, TokenSource.BONUS, 1, 0, "x", None, ()),))


def test_a_log_probability_of_zero_is_one() -> None:
    message = delta("x")
    message.delta.tokens[0].logprob = 0.0
    event = decode_event(message)
    assert isinstance(event, Delta)
    assert event.tokens[0].logprob == 0.0


def test_finished() -> None:
    event = finished()
    assert event.reason is FinishReason.MAX_TOKENS
    assert event.usage == Usage(3, 5, 0)
    assert event.speculation.accepted_lengths == (1, 0, 1)
    assert event.time.network_seconds == 0.1
    assert (event.degraded, event.stop_sequence, event.stop_token_id) == (None, None, None)


def test_what_stopped_an_answer() -> None:
    assert finished(stop_sequence="").stop_sequence == ""
    assert finished(stop_token_id=0).stop_token_id == 0
    assert finished(stop_token_id=0).stop_sequence is None


def test_an_answer_without_its_draft() -> None:
    degraded = pb.Degraded(reason="gone", since_round=2, seconds=1.5)
    assert finished(degraded=degraded).degraded == Degraded("gone", 2, 1.5)


def test_every_reason_and_source_of_the_contract_is_known() -> None:
    reasons = {
        finished(finish_reason=number).reason
        for number in pb.FinishReason.values()
        if number != pb.FINISH_REASON_UNSPECIFIED
    }
    assert reasons == set(FinishReason) - {FinishReason.UNKNOWN}
    sources, numbers = set(), cast(Sequence[pb.TokenSource], pb.TokenSource.values())
    for source in numbers:
        event = decode_event(delta("x", source))
        assert isinstance(event, Delta)
        sources.add(event.tokens[0].source)
    assert sources == set(TokenSource)


def test_what_only_a_newer_server_knows_is_no_error() -> None:
    newer: Any = 99
    assert finished(finish_reason=newer).reason is FinishReason.UNKNOWN
    event = decode_event(delta("x", newer))
    assert isinstance(event, Delta)
    assert event.tokens[0].source is TokenSource.UNKNOWN
    assert decode_event(pb.GenerateResponse.FromString(b"\x22\x02\x08\x01")) is None
    message = pb.DescribeModelResponse(target=model_pb2.ModelDescription(rollback=newer))
    assert decode_models(message).draft is None


def test_models() -> None:
    message = pb.DescribeModelResponse(
        target=model_pb2.ModelDescription(model_id="large", context_length=256),
        draft=model_pb2.ModelDescription(model_id="small"),
        chat_template=True,
    )
    models = decode_models(message)
    assert (models.target.model_id, models.target.context_length) == ("large", 256)
    assert models.draft is not None
    assert models.draft.model_id == "small"
    assert models.chat_template


def test_tokenization() -> None:
    message = pb.TokenizeResponse(ids=[1, 2], texts=["a", ""])
    assert decode_tokenization(message) == Tokenization((1, 2), ("a", ""))
