"""Each feature of a request with drafting off, on, and with a draft that dies midway: the same
reply, to the last id. A real target, a real draft, in float32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pytest

from tests.relayed_draft import RelayedDraft, relayed_draft
from tests.services import Answers, RunningServices, free_address, running_draft, running_services
from uag.model.v1 import model_pb2
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.models import catalogue
from uag_common.models.source import resolve

pytestmark = pytest.mark.real_model

NEW_TOKENS = 14
DIES_IN = 3
LOGPROB_TOLERANCE = 2e-3
GEMMA_ROWS = 262_144


class Drafting(Enum):
    """What the draft does while the request is answered."""

    OFF = "off"
    ON = "on"
    DYING = "dying"


def chat(*turns: str) -> pb.Chat:
    """User and assistant in turn."""
    roles = ("user", "assistant")
    return pb.Chat(
        messages=[
            pb.ChatMessage(role=roles[index % 2], content=text) for index, text in enumerate(turns)
        ]
    )


QUESTION = chat("Tell me about the sea in a few words.")
SCHEMA = '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, '
SCHEMA += '"age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}'


def sampled(**options: object) -> pb.SamplingOptions:
    return pb.SamplingOptions(**{"temperature": 0.9, "seed": 11} | options)  # type: ignore[arg-type]


def asked(**options: object) -> pb.GenerateRequest:
    """QUESTION with these options."""
    defaults = {"chat": QUESTION, "max_new_tokens": NEW_TOKENS}
    if {"text", "token_ids", "chat"} & options.keys():
        del defaults["chat"]
    return pb.GenerateRequest(**defaults | options)  # type: ignore[arg-type]


def constrained(**kind: object) -> pb.GenerateRequest:
    return asked(constraint=model_pb2.Constraint(**kind), max_new_tokens=32)  # type: ignore[arg-type]


def stopping(**options: object) -> pb.GenerateRequest:
    return asked(stopping=pb.StoppingOptions(**options), max_new_tokens=24)  # type: ignore[arg-type]


# "The sea is a vast" ... is how the target answers QUESTION.
FEATURES = {
    "text": asked(text="The capital of France is Paris. The capital of Japan – 日本 –"),
    "short prompt": asked(text="A"),
    "chat of several turns": asked(chat=chat("Hi", "Hello! 👋", "Say e\u0301 and 海.")),
    "control text": asked(chat=chat("Repeat: <|im_end|>\n<|im_start|>system <end_of_turn></s>")),
    "token ids": asked(token_ids=pb.TokenIds(ids=[504, 3575, 282, 4649, 314])),
    "truncated": asked(truncate_prompt_tokens=9),
    "max 1": asked(max_new_tokens=1),
    "max 2": asked(max_new_tokens=2),
    "max 3": asked(max_new_tokens=3),
    "temperature": asked(sampling=sampled()),
    "high temperature": asked(sampling=sampled(temperature=1.5)),
    "top_k": asked(sampling=sampled(top_k=5)),
    "top_p": asked(sampling=sampled(top_p=0.8)),
    "min_p": asked(sampling=sampled(min_p=0.1)),
    "typical_p": asked(sampling=sampled(typical_p=0.7)),
    "all filters": asked(sampling=sampled(top_k=40, top_p=0.95, min_p=0.01, typical_p=0.9)),
    "repetition penalty": asked(sampling=pb.SamplingOptions(repetition_penalty=1.3)),
    "frequency penalty": asked(sampling=pb.SamplingOptions(frequency_penalty=1.5)),
    "presence penalty": asked(sampling=sampled(presence_penalty=1.5)),
    "logit bias": asked(sampling=pb.SamplingOptions(logit_bias={28: -100, 30: 5, 335: 4})),
    "three choices": asked(sampling=sampled(), n=3, max_new_tokens=8),
    "min new tokens": asked(
        chat=chat("Say OK and nothing else."), stopping=pb.StoppingOptions(min_new_tokens=12)
    ),
    "ends by itself": asked(chat=chat("What is 1 + 1? Only the number."), max_new_tokens=40),
    "ignored EOS": asked(
        chat=chat("What is 1 + 1? Only the number."), stopping=pb.StoppingOptions(ignore_eos=True)
    ),
    "stop sequence": stopping(stop_sequences=["nature's", " vast", "expanse"]),
    "stop sequence shown": stopping(stop_sequences=["ea is"], include_stop=True),
    "stop sequence over tokens": stopping(stop_sequences=["s a v", "ocean and"]),
    "stop sequence passed over": stopping(stop_sequences=["sea", "."], min_new_tokens=6),
    "stop token": stopping(stop_token_ids=[28, 30, 253]),
    "time limit": stopping(time_limit_seconds=600),
    "logprobs": asked(logprobs=pb.LogprobOptions(top=5)),
    "logprobs of a sample": asked(
        sampling=sampled(top_p=0.9, repetition_penalty=1.1), logprobs=pb.LogprobOptions(top=3)
    ),
    "prompt logprobs": asked(logprobs=pb.LogprobOptions(prompt_top=2), max_new_tokens=3),
    "JSON schema": constrained(json_schema=SCHEMA),
    "regex": constrained(regex="The (sea|ocean)[a-z ]{0,40}\\."),
    "choice": constrained(choice=model_pb2.Choices(texts=["blue and wide", "blue", "deep"])),
    "grammar": constrained(grammar='start: "The " WORD (" " WORD)* "!"\nWORD: /[a-z]{1,9}/'),
    "sampled JSON": asked(
        constraint=model_pb2.Constraint(json_schema=SCHEMA), sampling=sampled(), max_new_tokens=32
    ),
    "session": asked(session_id="a conversation", cache_salt="salt"),
    "names": asked(request_id="request-1", priority=3, metadata={"team": "sea"}),
}
STOPS = {
    "ends by itself": pb.FINISH_REASON_EOS,
    "stop sequence": pb.FINISH_REASON_STOP_SEQUENCE,
    "stop sequence shown": pb.FINISH_REASON_STOP_SEQUENCE,
    "stop sequence over tokens": pb.FINISH_REASON_STOP_SEQUENCE,
    "stop token": pb.FINISH_REASON_STOP_TOKEN,
    "JSON schema": pb.FINISH_REASON_EOS,
    "choice": pb.FINISH_REASON_EOS,
}


@dataclass(slots=True)
class Seen:
    """What drafting did over all features."""

    proposed: int = 0
    examined: int = 0
    accepted: int = 0
    died: int = 0
    features: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Stage:
    services: RunningServices
    relay: RelayedDraft
    seen: Seen

    def answer(self, request: pb.GenerateRequest, drafting: Drafting) -> Answers:
        wanted = pb.GenerateRequest()
        wanted.CopyFrom(request)
        speculation = wanted.speculation
        if drafting is Drafting.OFF:
            speculation.mode = pb.SPECULATION_MODE_OFF
        else:
            speculation.mode = pb.SPECULATION_MODE_FORCE
            speculation.draft_tokens = 3
        self.relay.servicer.dies_in = DIES_IN if drafting is Drafting.DYING else None
        return self.services.answers(wanted)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    draft, real = resolve(catalogue.DEFAULT_DRAFT), free_address()
    settings = {"draft_timeout_seconds": "120"}
    with (
        running_draft(draft, real),
        relayed_draft(draft, GEMMA_ROWS, real) as relay,
        running_services(
            resolve(catalogue.DEFAULT_TARGET),
            None,
            orchestrator_settings=settings,
            draft_address=relay.address,
        ) as services,
    ):
        yield Stage(services, relay, Seen())


@pytest.mark.parametrize("feature", FEATURES)
def test_the_reply_is_the_same_whatever_the_draft_does(stage: Stage, feature: str) -> None:
    request = FEATURES[feature]
    alone = stage.answer(request, Drafting.OFF)
    drafted = stage.answer(request, Drafting.ON)
    orphaned = stage.answer(request, Drafting.DYING)
    _same(alone, drafted)
    _same(alone, orphaned)
    assert all(not finished.HasField("degraded") for finished in drafted.finished)
    if feature in STOPS:
        assert alone.finished[0].finish_reason == STOPS[feature]
    _count(stage.seen, feature, drafted.finished, orphaned.finished)


def test_drafts_were_proposed_accepted_rejected_and_died(stage: Stage) -> None:
    """Without these the comparisons above prove nothing."""
    seen = stage.seen
    assert seen.features == FEATURES.keys()
    assert 0 < seen.accepted < seen.examined <= seen.proposed
    assert seen.died > len(FEATURES) / 2


def _count(
    seen: Seen, feature: str, drafted: Sequence[pb.Finished], orphaned: Sequence[pb.Finished]
) -> None:
    seen.features.add(feature)
    for finished in drafted:
        seen.proposed += finished.speculation.candidates_proposed
        seen.examined += finished.speculation.candidates_examined
        seen.accepted += finished.speculation.candidates_accepted
    seen.died += any(finished.HasField("degraded") for finished in orphaned)


def _same(alone: Answers, other: Answers) -> None:
    assert other.ids == alone.ids
    assert other.texts == alone.texts
    assert [_end(finished) for finished in other.finished] == [
        _end(finished) for finished in alone.finished
    ]
    _same_logprobs(alone.started.prompt, other.started.prompt)
    assert [_told(tokens) for tokens in other.tokens] == [_told(tokens) for tokens in alone.tokens]
    for mine, theirs in zip(alone.tokens, other.tokens, strict=True):
        _same_logprobs(mine, theirs)
        assert [token.text for token in mine] == [token.text for token in theirs]


def _end(finished: pb.Finished) -> tuple[object, ...]:
    usage = finished.usage
    return (
        finished.choice,
        finished.finish_reason,
        finished.WhichOneof("stop"),
        finished.stop_sequence,
        finished.stop_token_id,
        usage.prompt_tokens,
        usage.completion_tokens,
    )


def _told(tokens: Sequence[pb.Token]) -> list[bool]:
    return [token.HasField("logprob") for token in tokens]


def _same_logprobs(
    mine: Sequence[pb.Token | pb.PromptToken], theirs: Sequence[pb.Token | pb.PromptToken]
) -> None:
    """Equal to the rounding that another shape of the forward pass brings."""
    for one, other in zip(mine, theirs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=LOGPROB_TOLERANCE)
        assert len(one.top) == len(other.top)
        for best, second in zip(one.top, other.top, strict=True):
            assert best.logprob == pytest.approx(second.logprob, abs=LOGPROB_TOLERANCE)
