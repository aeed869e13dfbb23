"""From prompts and keywords to messages, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.client import InvalidRequestError, Message, Options, Prompt, TokenIds, chat
from orchestrator.client.request import (
    decode_options,
    encode_detokenize,
    encode_request,
    encode_tokenize,
)
from uag.orchestrator.v1 import orchestrator_pb2 as pb

EVERYTHING: Options = {
    "max_new_tokens": 40,
    "truncate_prompt_tokens": 100,
    "n": 3,
    "temperature": 0.5,
    "top_k": 50,
    "top_p": 0.75,
    "min_p": 0.125,
    "typical_p": 0.25,
    "repetition_penalty": 1.5,
    "frequency_penalty": -0.5,
    "presence_penalty": 2.0,
    "logit_bias": {7: -100.0, 0: 0.5},
    "seed": (1 << 64) - 1,
    "json_schema": '{"type": "object"}',
    "stop": ("\n\n", "ü"),
    "stop_token_ids": (0, 9),
    "include_stop": True,
    "ignore_eos": True,
    "min_new_tokens": 2,
    "time_limit": 1.5,
    "logprobs": 4,
    "prompt_logprobs": 1,
    "speculation": "force",
    "draft_tokens": 6,
    "draft_min_probability": 0.25,
    "on_draft_failure": "fail",
    "request_id": "request-1",
    "session_id": "session-1",
    "cache_salt": "salt",
    "priority": -5,
    "metadata": {"team": "blue"},
}
OTHER_CONSTRAINTS: tuple[Options, ...] = (
    {"regex": "[a-z]+"},
    {"choice": ("yes", "no")},
    {"grammar": 'start: "a"'},
)
ZEROS: Options = {"max_new_tokens": 0, "temperature": 0.0, "seed": 0, "logprobs": 0, "n": 0}


def given(message: Any, path: str = "") -> set[str]:
    """The paths of all fields of a message that are set."""
    paths: set[str] = set()
    for field, value in message.ListFields():
        inside = field.message_type is not None and not field.is_repeated
        paths |= given(value, f"{path}{field.name}.") if inside else {path + field.name}
    return paths


def leaves(kind: Any, path: str = "") -> Iterator[str]:
    """The paths of all fields of a kind of message."""
    for field in kind.fields:
        if field.message_type is None or field.is_repeated:
            yield path + field.name
        else:
            yield from leaves(field.message_type, f"{path}{field.name}.")


def test_every_field_of_the_contract_has_a_keyword_and_comes_back() -> None:
    reached: set[str] = set()
    for options in (EVERYTHING, *OTHER_CONSTRAINTS):
        message = encode_request("hi", options)
        reached |= given(message)
        assert decode_options(message) == options
    for prompt in (chat("hi"), TokenIds((1,))):
        reached |= given(encode_request(prompt, {}))
    whole = {
        path.replace("chat.messages", "chat") for path in leaves(pb.GenerateRequest.DESCRIPTOR)
    }
    assert {path.replace("chat.messages", "chat") for path in reached} == whole


def test_every_keyword_is_tested() -> None:
    tested = EVERYTHING.keys() | {name for options in OTHER_CONSTRAINTS for name in options}
    assert tested == Options.__annotations__.keys()


def test_what_is_not_given_is_not_sent() -> None:
    nothing: Any = dict.fromkeys(Options.__annotations__)
    assert encode_request("hi", {}) == pb.GenerateRequest(text="hi")
    assert encode_request("hi", nothing) == pb.GenerateRequest(text="hi")
    assert decode_options(pb.GenerateRequest(text="hi")) == {}


def test_zero_is_sent() -> None:
    assert decode_options(encode_request("hi", ZEROS)) == ZEROS


@pytest.mark.parametrize("word", ["stop", "choice"])
def test_one_text_is_no_sequence_of_letters(word: str) -> None:
    one: Any = {word: "yes"}
    assert decode_options(encode_request("hi", one)) == {word: ("yes",)}


def test_a_schema_may_be_an_object() -> None:
    message = encode_request("hi", {"json_schema": {"enum": ["ü", 1]}})
    assert json.loads(message.constraint.json_schema) == {"enum": ["ü", 1]}


def test_a_conversation() -> None:
    prompt = chat("hi", system="be brief")
    assert prompt == (Message("system", "be brief"), Message("user", "hi"))
    turns = encode_request([*prompt, Message("assistant", "")], {}).chat.messages
    assert [(turn.role, turn.content) for turn in turns] == [
        ("system", "be brief"),
        ("user", "hi"),
        ("assistant", ""),
    ]


@pytest.mark.parametrize(
    ("prompt", "which"), [("", "text"), ((), "chat"), (TokenIds(()), "token_ids")]
)
def test_an_empty_prompt_is_sent_as_what_it_is(prompt: Prompt, which: str) -> None:
    assert encode_request(prompt, {}).WhichOneof("prompt") == which


@pytest.mark.parametrize(
    ("prompt", "options", "field", "problem"),
    [
        ("x", {"max_new_tokens": 1 << 31}, "max_new_tokens", "is 2147483648"),
        ("x", {"draft_tokens": -(1 << 31) - 1}, "speculation.draft_tokens", "is -2147483649"),
        ("x", {"seed": -1}, "sampling.seed", "is -1"),
        ("x", {"logit_bias": {-1: 1.0}}, "sampling.logit_bias", "is {-1: 1.0}"),
        ("x", {"stop_token_ids": [1 << 32]}, "stopping.stop_token_ids", "is [4294967296]"),
        ("x", {"stop": "\udcff"}, "stopping.stop_sequences", "no valid Unicode at character 1"),
        ("x", {"speculation": "maybe"}, "speculation.mode", "is 'maybe', must be one of auto"),
        ("x", {"regex": "a", "choice": ["a"]}, "constraint", "regex and choice are given"),
        ("x", {"choice": []}, "constraint.choice", "at least one"),
        ("ab\udcff", {}, "text", "no valid Unicode at character 3"),
        (TokenIds([-1]), {}, "token_ids.ids", "is (-1,)"),
        ("x" * (16 << 20), {}, "prompt", "more than 16777216 bytes"),
    ],
)
def test_what_the_contract_has_no_room_for_is_named(
    prompt: Prompt, options: Any, field: str, problem: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        encode_request(prompt, options)
    assert refused.value.field == field
    assert problem in (refused.value.problem or "")
    assert str(refused.value) == f"INVALID_ARGUMENT: {field}: {refused.value.problem}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temprature": 1}, "unexpected keyword 'temprature'"),
        ({"temperature": "hot"}, "sampling.temperature: 'hot' is of the wrong type"),
        ({"max_new_tokens": 1.5}, "max_new_tokens: 1.5 is of the wrong type"),
        ({"logit_bias": {"a": 1.0}}, "sampling.logit_bias: "),
        ({"stop": [3]}, "stopping.stop_sequences: "),
    ],
)
def test_a_mistake_in_the_program_is_a_type_error(options: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        encode_request("hi", options)


def test_a_mode_that_only_a_newer_server_knows_is_left_out() -> None:
    message = pb.GenerateRequest(n=2)
    message.speculation.mode = 77  # type: ignore[assignment]
    assert decode_options(message) == {"n": 2}


def test_tokenizing_takes_what_has_text() -> None:
    assert encode_tokenize("hi") == pb.TokenizeRequest(text="hi")
    assert encode_tokenize(chat("hi")).chat.messages[0].content == "hi"
    with pytest.raises(TypeError, match="token ids need no tokenizing"):
        encode_tokenize(TokenIds((1,)))


def test_detokenizing_takes_any_iterable_of_ids() -> None:
    assert list(encode_detokenize(iter((3, 0))).ids) == [3, 0]
    with pytest.raises(InvalidRequestError, match="ids: is"):
        encode_detokenize([-3])
