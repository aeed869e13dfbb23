"""From prompts and keywords to messages, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.client import InvalidRequestError, Message, Options, Prompt, TokenIds, chat
from orchestrator.client.fields import argument_of
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
    "lookup_tokens": 7,
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
    ("prompt", "options", "argument", "field", "problem"),
    [
        ("x", {"max_new_tokens": 1 << 31}, "max_new_tokens", None, "is 2147483648, must be a"),
        ("x", {"draft_tokens": -(1 << 31) - 1}, "draft_tokens", "speculation.draft_tokens", "is -"),
        ("x", {"seed": -1}, "seed", "sampling.seed", "number from 0 to 18446744073709551615"),
        ("x", {"logit_bias": {-1: 1.0}}, "logit_bias", "sampling.logit_bias", "each key a whole"),
        ("x", {"stop_token_ids": [1 << 32]}, "stop_token_ids", None, "a sequence, each a whole"),
        ("x", {"stop": "\udcff"}, "stop", "stopping.stop_sequences", "no valid Unicode at char"),
        ("x", {"speculation": "maybe"}, "speculation", "speculation.mode", "one of auto, off"),
        ("x", {"regex": "a", "choice": ["a"]}, "choice", "constraint", "regex is given too"),
        ("x", {"choice": []}, "choice", "constraint.choice", "at least one"),
        ("ab\udcff", {}, "prompt", "text", "no valid Unicode at character 3"),
        (chat("a\udcff"), {}, "prompt[0].content", "content", "no valid Unicode at character 2"),
        (TokenIds([-1]), {}, "prompt", "token_ids.ids", "is [-1], must be a sequence"),
        ("x" * (16 << 20), {}, "prompt", None, "more than 16777216 bytes"),
    ],
)
def test_what_the_contract_has_no_room_for_is_named(
    prompt: Prompt, options: Any, argument: str, field: str | None, problem: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        encode_request(prompt, options)
    assert refused.value.argument == argument
    assert field in (None, refused.value.field)
    assert problem in (refused.value.problem or "")
    assert str(refused.value) == f"INVALID_ARGUMENT: {argument}: {refused.value.problem}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temprature": 1}, "unexpected keyword 'temprature'"),
        ({"temperature": "hot"}, "temperature: is 'hot', must be a number"),
        ({"max_new_tokens": 1.5}, "max_new_tokens: is 1.5, must be a whole number of 32"),
        ({"logit_bias": {"a": 1.0}}, "logit_bias: is {'a': 1.0}, must be a mapping; each key a"),
        ({"logit_bias": 3}, "logit_bias: is 3, must be a mapping; each key a"),
        ({"stop": [3]}, "stop: is [3], must be a sequence, each a text"),
        ({"stop_token_ids": "13"}, "stop_token_ids: is '13', must be a sequence, each a whole"),
        ({"stop_token_ids": b"13"}, "stop_token_ids: is b'13', must be a sequence, each a whole"),
        ({"stop_token_ids": 13}, "stop_token_ids: is 13, must be a sequence, each a whole"),
        ({"choice": {"a": 1}}, "choice: is {'a': 1}, must be a sequence, each a text"),
        ({"metadata": {"a": 1}}, "metadata: is {'a': 1}, must be a mapping; each key a text"),
        ({"ignore_eos": "yes"}, "ignore_eos: is 'yes', must be True or False"),
        ({"request_id": 5}, "request_id: is 5, must be a text"),
    ],
)
def test_a_mistake_in_the_program_is_a_type_error(options: Any, words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        encode_request("hi", options)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (b"hi", "prompt: b'hi' is no prompt"),
        (5, "prompt: 5 is no prompt"),
        (None, "prompt: None is no prompt"),
        ({"role": "user", "content": "x"}, "is no prompt"),
        ([1, 2], "prompt[0]: 1 is no message"),
        (["hi"], "prompt[0]: 'hi' is no message"),
        ([Message("user", "x"), {"role": "user"}], "prompt[1]: {'role': 'user'} is no message"),
        ([{"role": "user", "content": "x", "name": "y"}], "is no message"),
        ([{"role": "user", "content": 5}], "prompt[0].content: is 5, must be a text"),
        (TokenIds("12"), "prompt: is '12', must be a sequence, each a whole number"),  # type: ignore[arg-type]
        (TokenIds(7), "prompt: is 7, must be a sequence, each a whole number"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_prompt_is_a_type_error(prompt: Any, words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        encode_request(prompt, {})


def test_a_message_may_be_a_mapping() -> None:
    prompt = [{"role": "user", "content": "hi"}]
    assert encode_request(prompt, {}) == encode_request(chat("hi"), {})


@pytest.mark.parametrize(
    ("field", "argument"),
    [
        ("sampling.logit_bias[7]", "logit_bias[7]"),
        ("stopping.stop_sequences[0]", "stop[0]"),
        ("constraint.choice", "choice"),
        ("constraint", "constraint"),
        ("text", "prompt"),
        ("chat", "prompt"),
        ("chat.messages[2].role", "prompt[2].role"),
        ("token_ids.ids[5]", "prompt[5]"),
        ("metadata['n']", "metadata['n']"),
        ("n", "n"),
        ("not.there", "not.there"),
        ("", ""),
    ],
)
def test_a_field_is_told_as_the_argument_that_it_comes_from(field: str, argument: str) -> None:
    assert argument_of(field) == argument


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


def test_what_is_too_large_or_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequestError, match="json_schema: cannot be written as JSON"):
        encode_request("x", {"json_schema": {"enum": deep}})
    with pytest.raises(TypeError, match="stop: is a list too deep to be shown"):
        encode_request("x", {"stop": deep})
    huge: Any = 10**400
    for options in ({"temperature": huge}, {"logit_bias": {1: huge}}, {"ignore_eos": 1 << 63}):
        wrong: Any = options
        with pytest.raises(InvalidRequestError, match="must be"):
            encode_request("x", wrong)
    for encode in (encode_tokenize, lambda prompt: encode_request(prompt, {})):
        with pytest.raises(InvalidRequestError, match="prompt: makes a request of more than"):
            encode("x" * (16 << 20))
    # Taken apart by hand: the end of so deep a list is deep too.
    while deep:
        deep = deep.pop()
