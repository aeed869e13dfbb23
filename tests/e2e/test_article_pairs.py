"""Each pair of the article as miniatures, through the three real servers: each id is the target's
own, and drafts were accepted and rejected, also where a window slides or a rope changes midway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import pytest

from orchestrator.prompt.chat_template import ChatMessage
from tests.architectures.architecture import Boundary
from tests.architectures.folders import model_folder
from tests.architectures.lessons import TEXTS
from tests.architectures.oracle import Oracle
from tests.architectures.pairs import ALIKE, ARTICLE, MORE, Pair
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

NEW_TOKENS = 40
SAMPLED_TOKENS = 24
SEED = 7
TOLERANCE = 1e-3
QUICK = ("codellama+gpt-bigcode", "gemma-2+vicuna", "phi-3+qwen2")
"""Each has something that the others have not: learnt positions, a window, a rope that changes."""

UNKNOWN = "Quite another text, 12345, of nothing that was learnt: 🙂 日本, and so on and so forth."
BEGINNINGS = (TEXTS[0][:19], TEXTS[1][:8], TEXTS[2][:30], TEXTS[3][:6], UNKNOWN)
QUESTION = ChatMessage("user", TEXTS[0][:19])


@dataclass(frozen=True, slots=True)
class Stage:
    """A pair that runs, and the right answers."""

    pair: Pair
    services: RunningServices
    oracle: Oracle

    def prompts(self) -> list[list[int]]:
        """The beginnings, and a text that nobody knows up to shortly before the boundary."""
        prompts = self.oracle.prompts
        ids = [prompts.text_prompt(text) for text in BEGINNINGS]
        if (boundary := self.pair.target.boundary) is not None:
            unknown = prompts.text_prompt(UNKNOWN)
            ids += [unknown[: boundary.tokens - before] for before in (1, 3, 6)]
        return ids


@dataclass(slots=True)
class Seen:
    """What drafting did over some answers. `crossed`: rounds on both sides of the target's
    boundary, or that had to end there with guesses left. `fell_back`: rounds with guesses behind
    the boundary that ended before it."""

    boundary: Boundary | None
    draft_tokens: int
    proposed: int = 0
    examined: int = 0
    accepted: int = 0
    crossed: int = 0
    fell_back: int = 0

    def add(self, answer: Answer) -> None:
        assert not answer.finished.HasField("degraded"), answer.finished.degraded
        figures = answer.finished.speculation
        self.proposed += figures.candidates_proposed
        self.examined += figures.candidates_examined
        self.accepted += figures.candidates_accepted
        if self.boundary is not None:
            for contexts in rounds(answer):
                self._add_round(contexts, self.boundary)

    def _add_round(self, contexts: range, boundary: Boundary) -> None:
        first, last, end = contexts[0], contexts[-1], boundary.tokens
        guessed = first + self.draft_tokens
        self.crossed += first <= end < last or (boundary.of_all and last == end < guessed)
        self.fell_back += last < end < guessed

    def check(self) -> None:
        """Without this, equal ids prove nothing."""
        assert 0 < self.accepted < self.examined <= self.proposed, self
        assert self.boundary is None or (self.crossed and self.fell_back), self


def rounds(answer: Answer) -> Iterator[range]:
    """Of each round but the prefill and the last, the lengths of the contexts behind which its
    tokens stand."""
    at = answer.started.prompt_tokens
    for index, tokens in groupby(answer.tokens, key=lambda token: token.round):
        before, at = at, at + len(list(tokens))
        if 0 < index < answer.finished.speculation.rounds:
            yield range(before, at)


@contextmanager
def running(pair: Pair) -> Iterator[Stage]:
    target, draft = model_folder(pair.target), model_folder(pair.draft)
    with running_services(
        target,
        draft,
        model_settings={"dtype": "float32"},
        orchestrator_settings={"draft_timeout_seconds": "120"},
    ) as services:
        yield Stage(pair, services, Oracle(pair.target, target))


def parameter(pair: Pair) -> object:
    return pytest.param(pair, id=pair.name, marks=[] if pair.name in QUICK else [pytest.mark.full])


@pytest.fixture(scope="module", params=[parameter(pair) for pair in (*ARTICLE, *MORE)])
def stage(request: pytest.FixtureRequest, real_tokenizers: None) -> Iterator[Stage]:
    del real_tokenizers
    with running(request.param) as found:
        yield found


def asked(draft_tokens: int, **options: object) -> pb.GenerateRequest:
    """0: without drafts."""
    mode = pb.SPECULATION_MODE_FORCE if draft_tokens else pb.SPECULATION_MODE_OFF
    speculation = pb.SpeculationOptions(mode=mode, draft_tokens=draft_tokens)
    options = {"max_new_tokens": NEW_TOKENS, "speculation": speculation} | options
    return pb.GenerateRequest(**options)  # type: ignore[arg-type]


def greedy(stage: Stage, draft_tokens: int) -> Seen:
    """Answers to all prompts, each compared with the oracle's."""
    seen = Seen(stage.pair.target.boundary, draft_tokens)
    for prompt in stage.prompts():
        request = asked(draft_tokens, token_ids=pb.TokenIds(ids=prompt))
        answer = stage.services.generate(request)
        assert answer.ids == stage.oracle.answer(prompt, NEW_TOKENS), prompt
        seen.add(answer)
    return seen


@pytest.mark.parametrize("draft_tokens", [pytest.param(4, marks=pytest.mark.full), 9])
def test_greedy_answers_are_those_of_the_target_alone(stage: Stage, draft_tokens: int) -> None:
    greedy(stage, draft_tokens).check()


def test_texts_and_conversations_are_encoded_as_by_the_model_itself(stage: Stage) -> None:
    message = pb.ChatMessage(role=QUESTION.role, content=QUESTION.content)
    prompts = stage.oracle.prompts
    for request, ids in (
        (asked(4, chat=pb.Chat(messages=[message])), prompts.chat_prompt([QUESTION])),
        (asked(4, text=UNKNOWN), prompts.text_prompt(UNKNOWN)),
    ):
        answer = stage.services.generate(request)
        assert answer.started.prompt_tokens == len(ids)
        assert answer.ids == stage.oracle.answer(ids, NEW_TOKENS)


def test_log_probabilities_are_those_of_the_target_alone(stage: Stage) -> None:
    """They show what no greedy choice shows, such as a cap of the logits."""
    prompt = stage.prompts()[-1]
    answer = stage.services.generate(
        asked(9, token_ids=pb.TokenIds(ids=prompt), logprobs=pb.LogprobOptions(top=1))
    )
    logits = stage.oracle.logits([*prompt, *answer.ids[:-1]], len(answer.ids))
    expected = logits.log_softmax(-1)[range(len(answer.ids)), answer.ids].tolist()
    assert [token.logprob for token in answer.tokens] == pytest.approx(expected, abs=TOLERANCE)


def test_sampled_answers_are_the_same_without_a_draft(stage: Stage) -> None:
    draft_tokens = 6
    seen = Seen(stage.pair.target.boundary, draft_tokens)
    for at, prompt in enumerate(stage.prompts()):
        options = {
            "token_ids": pb.TokenIds(ids=prompt),
            "max_new_tokens": SAMPLED_TOKENS,
            "sampling": pb.SamplingOptions(temperature=(0.6, 1.0)[at % 2], seed=SEED),
        }
        drafted = stage.services.generate(asked(draft_tokens, **options))
        alone = stage.services.generate(asked(0, **options))
        assert drafted.ids == alone.ids, prompt
        seen.add(drafted)
    seen.check()


@pytest.mark.full
@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize("pair", ALIKE, ids=lambda pair: pair.name)
def test_a_draft_of_the_same_weights_is_always_right(pair: Pair) -> None:
    with running(pair) as stage:
        seen = greedy(stage, draft_tokens=9)
    # The target's own token where a round had to end counts as a guess that it examined.
    of_all = seen.boundary is not None and seen.boundary.of_all
    assert seen.examined - seen.accepted <= (seen.crossed if of_all else 0)
    assert seen.accepted
    assert seen.crossed
