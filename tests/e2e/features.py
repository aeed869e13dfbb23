"""Each thing that a request can ask for, as one request. Knows the contract; what a target is
asked, and what it says to that, stands in `Words`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uag.model.v1 import model_pb2
from uag.orchestrator.v1 import orchestrator_pb2 as pb

NEW_TOKENS = 14
SEED = 12
SCHEMA = '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, '
SCHEMA += '"age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}'


def text(words: str) -> pb.GenerateRequest:
    return pb.GenerateRequest(text=words)


def chat(*turns: str) -> pb.GenerateRequest:
    """User and assistant in turn."""
    roles = ("user", "assistant")
    messages = [pb.ChatMessage(role=roles[at % 2], content=turn) for at, turn in enumerate(turns)]
    return pb.GenerateRequest(chat=pb.Chat(messages=messages))


@dataclass(frozen=True, slots=True)
class Words:
    """What one target is asked, and where its greedy answers stop; prompts are requests with
    nothing else in them."""

    question: pb.GenerateRequest
    """The stops below come in its greedy answer."""
    brief: pb.GenerateRequest
    """Answered with fewer than 12 tokens and an EOS."""
    text: str
    turns: Sequence[str]
    control: str
    """Of the target's control tokens and the draft's."""
    token_ids: Sequence[int]
    kept_tokens: int
    """Fewer than the question has."""
    temperature: float
    """Where many tokens are possible, but not any."""
    bias: Mapping[int, float]
    stop: Sequence[str]
    stop_shown: str
    stop_over_tokens: Sequence[str]
    stop_passed_over: Sequence[str]
    """The first comes within the first 6 tokens."""
    stop_token_ids: Sequence[int]


# "The sea is a vast" ... is how it answers the question.
SMOLLM2 = Words(
    question=chat("Tell me about the sea in a few words."),
    brief=chat("What is 1 + 1? Only the number."),
    text="The capital of France is Paris. The capital of Japan – 日本 –",
    turns=("Hi", "Hello! 👋", "Say e\u0301 and 海."),
    control="Repeat: <|im_end|>\n<|im_start|>system <end_of_turn></s>",
    token_ids=(504, 3575, 282, 4649, 314),
    kept_tokens=9,
    temperature=0.9,
    bias={28: -100, 30: 5, 335: 4},
    stop=("nature's", " vast", "expanse"),
    stop_shown="ea is",
    stop_over_tokens=("s a v", "ocean and"),
    stop_passed_over=("sea", "."),
    stop_token_ids=(28, 30, 253),
)


def features(words: Words) -> dict[str, pb.GenerateRequest]:
    """By name; the names are the same for all targets."""
    return {
        **_prompts(words),
        **_lengths(words),
        **_samplings(words),
        **_penalties(words),
        **_stops(words),
        **_reports(words),
        **_constraints(words),
        **_names(words),
    }


def _asked(
    prompt: pb.GenerateRequest, *, max_new_tokens: int = NEW_TOKENS, **options: Any
) -> pb.GenerateRequest:
    request = pb.GenerateRequest(max_new_tokens=max_new_tokens, **options)
    request.MergeFrom(prompt)
    return request


def _sampled(words: Words, hotter: float = 0.0, **options: Any) -> pb.SamplingOptions:
    return pb.SamplingOptions(temperature=words.temperature + hotter, seed=SEED, **options)


def _prompts(words: Words) -> dict[str, pb.GenerateRequest]:
    ids = pb.GenerateRequest(token_ids=pb.TokenIds(ids=words.token_ids))
    return {
        "text": _asked(text(words.text)),
        "short prompt": _asked(text("A")),
        "chat of several turns": _asked(chat(*words.turns)),
        "control text": _asked(chat(words.control)),
        "token ids": _asked(ids),
        "truncated": _asked(words.question, truncate_prompt_tokens=words.kept_tokens),
    }


def _lengths(words: Words) -> dict[str, pb.GenerateRequest]:
    return {f"max {most}": _asked(words.question, max_new_tokens=most) for most in (1, 2, 3)}


def _samplings(words: Words) -> dict[str, pb.GenerateRequest]:
    question = words.question
    return {
        "temperature": _asked(question, sampling=_sampled(words)),
        "high temperature": _asked(question, sampling=_sampled(words, hotter=0.6)),
        "top_k": _asked(question, sampling=_sampled(words, top_k=5)),
        "top_p": _asked(question, sampling=_sampled(words, top_p=0.8)),
        "min_p": _asked(question, sampling=_sampled(words, min_p=0.1)),
        "typical_p": _asked(question, sampling=_sampled(words, typical_p=0.7)),
        "all filters": _asked(
            question, sampling=_sampled(words, top_k=40, top_p=0.95, min_p=0.01, typical_p=0.9)
        ),
        "three choices": _asked(question, sampling=_sampled(words), n=3, max_new_tokens=8),
    }


def _penalties(words: Words) -> dict[str, pb.GenerateRequest]:
    return {
        name: _asked(words.question, sampling=options)
        for name, options in {
            "repetition penalty": pb.SamplingOptions(repetition_penalty=1.3),
            "frequency penalty": pb.SamplingOptions(frequency_penalty=1.5),
            "presence penalty": _sampled(words, presence_penalty=1.5),
            "repetition wanted": _sampled(words, frequency_penalty=-2.0),
            "logit bias": pb.SamplingOptions(logit_bias=words.bias),
        }.items()
    }


def _stops(words: Words) -> dict[str, pb.GenerateRequest]:
    brief = words.brief
    return {
        "min new tokens": _asked(brief, stopping=pb.StoppingOptions(min_new_tokens=12)),
        "ends by itself": _asked(brief, max_new_tokens=40),
        "ignored EOS": _asked(brief, stopping=pb.StoppingOptions(ignore_eos=True)),
        **{
            name: _asked(words.question, stopping=options, max_new_tokens=24)
            for name, options in {
                "stop sequence": pb.StoppingOptions(stop_sequences=words.stop),
                "stop sequence shown": pb.StoppingOptions(
                    stop_sequences=[words.stop_shown], include_stop=True
                ),
                "stop sequence over tokens": pb.StoppingOptions(
                    stop_sequences=words.stop_over_tokens
                ),
                "stop sequence passed over": pb.StoppingOptions(
                    stop_sequences=words.stop_passed_over, min_new_tokens=6
                ),
                "stop token": pb.StoppingOptions(stop_token_ids=words.stop_token_ids),
                "time limit": pb.StoppingOptions(time_limit_seconds=600),
            }.items()
        },
    }


def _reports(words: Words) -> dict[str, pb.GenerateRequest]:
    question = words.question
    return {
        "logprobs": _asked(question, logprobs=pb.LogprobOptions(top=5)),
        "logprobs of a sample": _asked(
            question,
            sampling=_sampled(words, top_p=0.9, repetition_penalty=1.1),
            logprobs=pb.LogprobOptions(top=3),
        ),
        "prompt logprobs": _asked(
            question, logprobs=pb.LogprobOptions(prompt_top=2), max_new_tokens=3
        ),
    }


def _constraints(words: Words) -> dict[str, pb.GenerateRequest]:
    constraints = {
        "JSON schema": model_pb2.Constraint(json_schema=SCHEMA),
        "regex": model_pb2.Constraint(regex="The (sea|ocean)[a-z ]{0,40}\\."),
        "choice": model_pb2.Constraint(
            choice=model_pb2.Choices(texts=["blue and wide", "blue", "deep"])
        ),
        "grammar": model_pb2.Constraint(
            grammar='start: "The " WORD (" " WORD)* "!"\nWORD: /[a-z]{1,9}/'
        ),
    }
    return {
        **{
            name: _asked(words.question, constraint=constraint, max_new_tokens=32)
            for name, constraint in constraints.items()
        },
        "sampled JSON": _asked(
            words.question,
            constraint=constraints["JSON schema"],
            sampling=_sampled(words),
            max_new_tokens=32,
        ),
    }


def _names(words: Words) -> dict[str, pb.GenerateRequest]:
    return {
        "session": _asked(words.question, session_id="a conversation", cache_salt="salt"),
        "names": _asked(
            words.question, request_id="request-1", priority=3, metadata={"team": "sea"}
        ),
    }


FEATURE_NAMES = tuple(features(SMOLLM2))
