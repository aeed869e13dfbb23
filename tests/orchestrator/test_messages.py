"""Requests and events between messages and plain values: nothing is lost or made up."""

from __future__ import annotations

import pytest
from google.protobuf import json_format

from orchestrator.events import (
    CommittedToken,
    Delta,
    FinishReason,
    Prefilled,
    PromptToken,
    Started,
    TokenSource,
    TopToken,
)
from orchestrator.messages import decode_request, encode_event, encode_parameters
from orchestrator.request import DraftFailurePolicy, SpeculationMode, TokenPrompt
from uag.model.v1 import model_pb2
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.decoding import Constraint, ConstraintKind
from uag_common.errors import InvalidRequestError

WHOLE = pb.GenerateRequest(
    text="x",
    max_new_tokens=7,
    truncate_prompt_tokens=3,
    sampling=pb.SamplingOptions(
        temperature=0.5,
        top_k=3,
        top_p=0.25,
        min_p=0.125,
        typical_p=0.75,
        repetition_penalty=1.5,
        frequency_penalty=-0.5,
        presence_penalty=2.0,
        logit_bias={5: 1.5, 2: -3.0},
        seed=2**64 - 1,
    ),
    stopping=pb.StoppingOptions(
        min_new_tokens=2,
        stop_sequences=["a", "b"],
        stop_token_ids=[4, 3],
        include_stop=True,
        ignore_eos=True,
        time_limit_seconds=2.5,
    ),
    speculation=pb.SpeculationOptions(
        draft_tokens=4,
        mode=pb.SPECULATION_MODE_FORCE,
        min_probability=0.5,
        on_draft_failure=pb.DRAFT_FAILURE_POLICY_FAIL,
    ),
    logprobs=pb.LogprobOptions(top=0, prompt_top=5),
    constraint=model_pb2.Constraint(choice=model_pb2.Choices(texts=["yes", "no"])),
    n=2,
    request_id="r",
    session_id="s",
    cache_salt="c",
    priority=-4,
    metadata={"k": "v", "a": "b"},
)


def test_all_that_a_request_says_comes_back_in_its_parameters() -> None:
    expected = pb.GenerateRequest()
    expected.CopyFrom(WHOLE)
    expected.ClearField("text")
    assert encode_parameters(decode_request(WHOLE)) == expected
    # A field that is added to the contract is to be added to the test above.
    told = json_format.MessageToDict(WHOLE, preserving_proto_field_name=True)
    fields = {field.name for field in pb.GenerateRequest.DESCRIPTOR.fields}
    assert told.keys() == fields - {"chat", "token_ids"}


def test_what_is_not_given_is_left_to_the_server() -> None:
    request = decode_request(pb.GenerateRequest(token_ids=pb.TokenIds(ids=[4, 5])))
    assert request.prompt == TokenPrompt((4, 5))
    assert (request.max_new_tokens, request.n, request.constraint) == (None, None, None)
    assert (request.sampling.temperature, request.logprobs.top) == (None, None)
    assert request.speculation.mode is SpeculationMode.AUTO
    assert request.speculation.on_draft_failure is DraftFailurePolicy.DEGRADE
    zero = pb.GenerateRequest(text="x", logprobs=pb.LogprobOptions(top=0))
    assert decode_request(zero).logprobs.top == 0


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (ConstraintKind.JSON_SCHEMA, ("{}",)),
        (ConstraintKind.REGEX, ("a+",)),
        (ConstraintKind.GRAMMAR, ('start: "a"',)),
    ],
)
def test_constraints(kind: ConstraintKind, texts: tuple[str]) -> None:
    message = pb.GenerateRequest(text="x")
    setattr(message.constraint, kind.value, texts[0])
    assert decode_request(message).constraint == Constraint(kind, texts)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.GenerateRequest(), "prompt"),
        (pb.GenerateRequest(text="x", constraint=model_pb2.Constraint()), "constraint"),
        (
            pb.GenerateRequest(text="x", speculation=pb.SpeculationOptions(mode=9)),  # type: ignore[arg-type]
            "speculation.mode",
        ),
    ],
)
def test_what_has_no_plain_value_is_named(message: pb.GenerateRequest, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        decode_request(message)
    assert refused.value.field == field


def test_events() -> None:
    top = (TopToken(3, -0.25, "x"),)
    token = CommittedToken(3, TokenSource.BONUS, 4, 1, "x", -0.25, top)
    told = encode_event(Delta(2, (token,))).delta
    assert (told.choice, told.text) == (2, "x")
    assert told.tokens[0] == pb.Token(
        id=3,
        source=pb.TOKEN_SOURCE_BONUS,
        round=4,
        text="x",
        position=1,
        logprob=-0.25,
        top=[pb.TopToken(id=3, logprob=-0.25, text="x")],
    )
    prefilled = Prefilled(5, (PromptToken(8, -1.5, top),))
    started = Started(decode_request(WHOLE), 9, 4, 6, "target", "draft", "f" * 32, prefilled)
    message = encode_event(started).started
    assert (message.prompt_tokens, message.cached_tokens, message.max_new_tokens) == (9, 5, 7)
    assert message.prompt[0].logprob == -1.5
    assert message.parameters.request_id == "r"


def test_every_reason_and_source_has_its_number() -> None:
    reasons = {value.name for value in pb.FinishReason.DESCRIPTOR.values if value.number}
    assert reasons == {f"FINISH_REASON_{reason.name}" for reason in FinishReason}
    sources = {value.name for value in pb.TokenSource.DESCRIPTOR.values if value.number}
    assert sources == {f"TOKEN_SOURCE_{source.name}" for source in TokenSource}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (pb.GenerateRequest(token_ids=pb.TokenIds(ids=[1] * ((1 << 20) + 1))), "token_ids.ids"),
        (
            pb.GenerateRequest(chat=pb.Chat(messages=[pb.ChatMessage()] * 4097)),
            "chat.messages",
        ),
        (
            pb.GenerateRequest(
                text="x", sampling=pb.SamplingOptions(logit_bias=dict.fromkeys(range(1025), 1.0))
            ),
            "sampling.logit_bias",
        ),
        (
            pb.GenerateRequest(text="x", stopping=pb.StoppingOptions(stop_sequences=["a"] * 17)),
            "stopping.stop_sequences",
        ),
        (
            pb.GenerateRequest(text="x", stopping=pb.StoppingOptions(stop_token_ids=[1] * 65)),
            "stopping.stop_token_ids",
        ),
        (
            pb.GenerateRequest(text="x", metadata={str(key): "" for key in range(17)}),
            "metadata",
        ),
    ],
)
def test_a_list_that_is_too_long_is_refused_before_it_is_copied(
    message: pb.GenerateRequest, field: str
) -> None:
    with pytest.raises(InvalidRequestError, match="at most") as refused:
        decode_request(message)
    assert refused.value.field == field
