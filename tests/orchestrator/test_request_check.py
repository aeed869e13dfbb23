"""What is refused of a request before the vocabulary is known: one error that names the field."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import (
    AnswerRequest,
    ChatPrompt,
    DraftFailurePolicy,
    LogprobOptions,
    SamplingOptions,
    SpeculationMode,
    SpeculationOptions,
    StoppingOptions,
    TextPrompt,
    TokenPrompt,
)
from orchestrator.request_check import check_request
from uag_common.decoding import Constraint, ConstraintKind
from uag_common.errors import InvalidRequestError

GOOD = AnswerRequest(TextPrompt("a"))
SAMPLED = SamplingOptions(temperature=0.7)
REGEX = Constraint(ConstraintKind.REGEX, ("a",))
OFF, FORCE, FAIL = SpeculationMode.OFF, SpeculationMode.FORCE, DraftFailurePolicy.FAIL


@pytest.mark.parametrize(
    "request_",
    [
        GOOD,
        replace(GOOD, sampling=replace(SAMPLED, top_k=1, top_p=1.0, min_p=0.0, typical_p=1.0)),
        replace(GOOD, sampling=SamplingOptions(seed=2**64 - 1, repetition_penalty=1.2)),
        replace(GOOD, sampling=SAMPLED, n=16),
        replace(GOOD, n=1, priority=-100, request_id="~" * 128, session_id="é" * 64),
        replace(GOOD, metadata=(("k" * 64, "v" * 256),)),
        replace(GOOD, stopping=StoppingOptions(0, ("é" * 128,), (1,) * 64, True, True, 0.001)),
        replace(GOOD, speculation=SpeculationOptions(0, 0, OFF, 0.0)),
        replace(GOOD, speculation=SpeculationOptions(64, 0, FORCE, 1.0, FAIL)),
        replace(GOOD, logprobs=LogprobOptions(0, 20)),
        replace(GOOD, constraint=REGEX, stopping=StoppingOptions(min_new_tokens=0)),
        AnswerRequest(ChatPrompt((ChatMessage("user", ""),))),
        AnswerRequest(TokenPrompt((0,))),
    ],
)
def test_what_is_right_passes(request_: AnswerRequest) -> None:
    check_request(request_)


def sampling(**options: Any) -> AnswerRequest:
    return replace(GOOD, sampling=SamplingOptions(**{"temperature": 1.0} | options))


def stopping(**options: Any) -> AnswerRequest:
    return replace(GOOD, stopping=StoppingOptions(**options))


def speculation(**options: Any) -> AnswerRequest:
    return replace(GOOD, speculation=SpeculationOptions(**options))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (AnswerRequest(TextPrompt("")), "text"),
        (AnswerRequest(ChatPrompt(())), "chat.messages"),
        (AnswerRequest(ChatPrompt((ChatMessage("tool", "x"),))), "chat.messages[0].role"),
        (AnswerRequest(TokenPrompt(())), "token_ids.ids"),
        (replace(GOOD, max_new_tokens=0), "max_new_tokens"),
        (replace(GOOD, truncate_prompt_tokens=0), "truncate_prompt_tokens"),
        (replace(GOOD, n=0), "n"),
        (replace(GOOD, n=17, sampling=SAMPLED), "n"),
        (replace(GOOD, priority=101), "priority"),
        (replace(GOOD, request_id="x" * 129), "request_id"),
        (replace(GOOD, request_id="é"), "request_id"),
        (replace(GOOD, request_id="a\nb"), "request_id"),
        (replace(GOOD, session_id="é" * 65), "session_id"),
        (replace(GOOD, cache_salt="x" * 129), "cache_salt"),
        (replace(GOOD, metadata=(("", "x"),)), "metadata"),
        (replace(GOOD, metadata=(("k" * 65, "x"),)), "metadata"),
        (replace(GOOD, metadata=(("k", "x" * 257),)), "metadata['k']"),
        (replace(GOOD, logprobs=LogprobOptions(top=21)), "logprobs.top"),
        (replace(GOOD, logprobs=LogprobOptions(top=-1)), "logprobs.top"),
        (replace(GOOD, logprobs=LogprobOptions(prompt_top=21)), "logprobs.prompt_top"),
        (stopping(min_new_tokens=-1), "stopping.min_new_tokens"),
        (stopping(stop_sequences=("a", "")), "stopping.stop_sequences[1]"),
        (stopping(stop_sequences=("é" * 129,)), "stopping.stop_sequences[0]"),
        (stopping(time_limit_seconds=0.0), "stopping.time_limit_seconds"),
        (stopping(time_limit_seconds=math.inf), "stopping.time_limit_seconds"),
        (stopping(time_limit_seconds=math.nan), "stopping.time_limit_seconds"),
        (speculation(draft_tokens=-1), "speculation.draft_tokens"),
        (speculation(draft_tokens=65), "speculation.draft_tokens"),
        (speculation(min_probability=1.1), "speculation.min_probability"),
        (speculation(min_probability=math.nan), "speculation.min_probability"),
        (sampling(temperature=-0.1), "sampling.temperature"),
        (sampling(temperature=101.0), "sampling.temperature"),
        (sampling(temperature=math.nan), "sampling.temperature"),
        (sampling(temperature=math.inf), "sampling.temperature"),
        (sampling(top_k=0), "sampling.top_k"),
        (sampling(top_k=-1), "sampling.top_k"),
        (sampling(top_p=0.0), "sampling.top_p"),
        (sampling(top_p=1.1), "sampling.top_p"),
        (sampling(top_p=math.nan), "sampling.top_p"),
        (sampling(min_p=-0.1), "sampling.min_p"),
        (sampling(min_p=1.1), "sampling.min_p"),
        (sampling(typical_p=0.0), "sampling.typical_p"),
        (sampling(repetition_penalty=0.0), "sampling.repetition_penalty"),
        (sampling(repetition_penalty=math.inf), "sampling.repetition_penalty"),
        (sampling(repetition_penalty=101.0), "sampling.repetition_penalty"),
        (sampling(frequency_penalty=101.0), "sampling.frequency_penalty"),
        (sampling(presence_penalty=math.nan), "sampling.presence_penalty"),
        (sampling(logit_bias=((7, math.nan),)), "sampling.logit_bias[7]"),
        (sampling(logit_bias=((7, 101.0),)), "sampling.logit_bias[7]"),
        (sampling(logit_bias=tuple((i, 1.0) for i in range(1025))), "sampling.logit_bias"),
    ],
)
def test_what_is_wrong_is_named(request_: AnswerRequest, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_request(request_)
    assert refused.value.field == field
    assert "must" in refused.value.problem or "allowed" in refused.value.problem


@pytest.mark.parametrize(
    ("request_", "field", "words"),
    [
        (replace(GOOD, sampling=SamplingOptions(top_k=5)), "sampling.top_k", "temperature"),
        (sampling(temperature=0.0, top_p=0.5), "sampling.top_p", "temperature"),
        (replace(GOOD, sampling=SamplingOptions(min_p=0.5)), "sampling.min_p", "temperature"),
        (replace(GOOD, sampling=SamplingOptions(typical_p=1)), "sampling.typical_p", "temperature"),
        (replace(GOOD, n=2), "n", "greedy"),
        (replace(stopping(ignore_eos=True), constraint=REGEX), "stopping.ignore_eos", "constraint"),
        (
            replace(stopping(min_new_tokens=1), constraint=REGEX),
            "stopping.min_new_tokens",
            "constraint",
        ),
        (speculation(mode=OFF, draft_tokens=3), "speculation.draft_tokens", "OFF"),
        (speculation(mode=OFF, min_probability=0.3), "speculation.min_probability", "OFF"),
        (speculation(mode=FORCE, draft_tokens=0), "speculation.draft_tokens", "FORCE"),
        (speculation(mode=FORCE, lookup_tokens=8), "speculation.lookup_tokens", "FORCE"),
        (
            speculation(mode=OFF, on_draft_failure=FAIL),
            "speculation.on_draft_failure",
            "OFF",
        ),
    ],
)
def test_contradictions_are_named(request_: AnswerRequest, field: str, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as refused:
        check_request(request_)
    assert refused.value.field == field
