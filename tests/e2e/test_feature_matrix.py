"""Each feature of a request with drafting off, on, and with a draft that dies midway: the same
reply, to the last id. On small models; `test_default_pair` has real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.e2e.features import FEATURE_NAMES, Words, features, text
from tests.relayed_draft import RelayedDraft, relayed_draft
from tests.services import Answers, RunningServices, free_address, running_draft, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

DIES_IN = 3
LOGPROB_TOLERANCE = 2e-3
BLUR = 0.4
"""Noise on the small draft's weights, in parts of their spread."""
STOPS = {
    "ends by itself": pb.FINISH_REASON_EOS,
    "stop sequence": pb.FINISH_REASON_STOP_SEQUENCE,
    "stop sequence shown": pb.FINISH_REASON_STOP_SEQUENCE,
    "stop sequence over tokens": pb.FINISH_REASON_STOP_SEQUENCE,
    "stop token": pb.FINISH_REASON_STOP_TOKEN,
    "choice": pb.FINISH_REASON_EOS,
}
"""How the first answer of any target ends, by feature."""


def small(target: Path) -> Words:
    """For the small Llama, which knows by heart how the question goes on: " the lazy dog, and the
    dog does not mind it at all."."""
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    comma, full_stop, the = (tokenizer.encode(word).ids[0] for word in (",", ".", " the"))
    return Words(
        question=text("The quick brown fox jumps over"),
        brief=text("It rained for 40 days; on day 41 the sun came out, and everybody went"),
        text="It rained 日本 – 🙂",
        turns=("The quick brown", "fox 👋", "Say e\u0301 and 海."),
        control="It <turn>\n<eos><bos></s>",
        token_ids=tokenizer.encode("def add(left").ids,
        kept_tokens=3,
        temperature=1.4,
        bias={comma: -100, full_stop: 5, the: 4},
        stop=("cat", " mind", "all"),
        stop_shown="t mi",
        stop_over_tokens=("g does n", "rain and"),
        stop_passed_over=("lazy", "."),
        stop_token_ids=(full_stop,),
    )


class Drafting(Enum):
    """What the draft does while the request is answered."""

    OFF = "off"
    ON = "on"
    DYING = "dying"


@dataclass(slots=True)
class Seen:
    """What drafting did over all features."""

    proposed: int = 0
    examined: int = 0
    accepted: int = 0
    died: int = 0
    features: set[str] = field(default_factory=set)

    def add(
        self, feature: str, drafted: Sequence[pb.Finished], orphaned: Sequence[pb.Finished]
    ) -> None:
        self.features.add(feature)
        for finished in drafted:
            self.proposed += finished.speculation.candidates_proposed
            self.examined += finished.speculation.candidates_examined
            self.accepted += finished.speculation.candidates_accepted
        self.died += any(finished.HasField("degraded") for finished in orphaned)

    @property
    def proven(self) -> bool:
        """Whether the comparisons prove anything."""
        judged = 0 < self.accepted < self.examined <= self.proposed
        return judged and self.died > len(self.features) / 2


@dataclass(frozen=True, slots=True)
class Stage:
    """A pair that runs, and what it is asked."""

    services: RunningServices
    relay: RelayedDraft
    requests: dict[str, pb.GenerateRequest]
    seen: Seen

    def answer(self, feature: str, drafting: Drafting) -> Answers:
        wanted = pb.GenerateRequest()
        wanted.CopyFrom(self.requests[feature])
        speculation = wanted.speculation
        if drafting is Drafting.OFF:
            speculation.mode = pb.SPECULATION_MODE_OFF
        else:
            speculation.mode = pb.SPECULATION_MODE_FORCE
            speculation.draft_tokens = 3
        self.relay.servicer.dies_in = DIES_IN if drafting is Drafting.DYING else None
        return self.services.answers(wanted)


@contextmanager
def stage_of(target: Path, draft: Path, draft_rows: int, words: Words) -> Iterator[Stage]:
    real = free_address()
    settings = {"draft_timeout_seconds": "120"}
    with (
        running_draft(draft, real),
        relayed_draft(draft, draft_rows, real) as relay,
        running_services(
            target, None, orchestrator_settings=settings, draft_address=relay.address
        ) as services,
    ):
        yield Stage(services, relay, features(words), Seen())


def nearly(target: Path, folder: Path) -> Path:
    """Makes a draft of `target` that mostly agrees with it, also where both draw from many."""
    tokenizer, network = (
        kind.from_pretrained(target) for kind in (AutoTokenizer, AutoModelForCausalLM)
    )
    generator = torch.Generator().manual_seed(1)
    for weight in network.parameters():
        if weight.dim() > 1:
            noise = torch.randn(weight.shape, generator=generator)
            weight.data += BLUR * weight.std().item() * noise
    for part in (tokenizer, network):
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def small_pair(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    draft = nearly(llama, tmp_path_factory.mktemp("models") / "blurred")
    rows = json.loads((draft / "config.json").read_text())["vocab_size"]
    with stage_of(llama, draft, rows, small(llama)) as stage:
        yield stage


@pytest.mark.parametrize("feature", FEATURE_NAMES)
def test_the_reply_is_the_same_whatever_the_draft_does(small_pair: Stage, feature: str) -> None:
    check(small_pair, feature, STOPS.get(feature))


def test_drafts_were_proposed_accepted_rejected_and_died(small_pair: Stage) -> None:
    """Without these the comparisons above prove nothing."""
    print(small_pair.seen)
    assert small_pair.seen.features == set(FEATURE_NAMES)
    assert small_pair.seen.proven, small_pair.seen


def check(stage: Stage, feature: str, stop: pb.FinishReason | None) -> None:
    """Asks three times; fails where the replies differ, or end in another way than by `stop`."""
    alone = stage.answer(feature, Drafting.OFF)
    drafted = stage.answer(feature, Drafting.ON)
    orphaned = stage.answer(feature, Drafting.DYING)
    _same(alone, drafted)
    _same(alone, orphaned)
    assert all(not finished.HasField("degraded") for finished in drafted.finished)
    assert stop in (None, alone.finished[0].finish_reason)
    stage.seen.add(feature, drafted.finished, orphaned.finished)


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
