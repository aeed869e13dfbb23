"""A draft that holds far less than the target goes on drafting, and the answer is the target's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.miniatures import TEXT
from tests.reference import Reference
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

DRAFT_CONTEXT = 48
NEW_TOKENS = 100
# What was learnt by heart goes on as it was learnt, wherever it stands.
SHORT = (TEXT[0][:30], TEXT[3][:6])
LONG = tuple(" ".join(TEXT) + "\n" + start for start in SHORT)


@dataclass(frozen=True, slots=True)
class Stage:
    """A target with a context of 256 tokens, a draft with one of 48."""

    services: RunningServices
    reference: Reference

    def answer(self, text: str, draft_tokens: int, seed: int | None = None) -> Answer:
        """An answer that is never at its end; greedy without a seed. That a draft is given up would
        make it an error."""
        eos = self.reference.tokenizer.eos_token_id
        mode = pb.SPECULATION_MODE_FORCE if draft_tokens else pb.SPECULATION_MODE_OFF
        policy = pb.DRAFT_FAILURE_POLICY_FAIL if draft_tokens else pb.DRAFT_FAILURE_POLICY_DEGRADE
        request = pb.GenerateRequest(
            text=text,
            max_new_tokens=NEW_TOKENS,
            sampling=pb.SamplingOptions(
                temperature=None if seed is None else 0.8, seed=seed, logit_bias={eos: -100.0}
            ),
            speculation=pb.SpeculationOptions(
                mode=mode, draft_tokens=draft_tokens, on_draft_failure=policy
            ),
        )
        return self.services.generate(request)


def shortened(model: Path, folder: Path, context: int) -> Path:
    """The model with another context in its configuration."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": context}))
    return folder


@pytest.fixture(
    scope="module",
    params=["two vocabularies", pytest.param("one vocabulary", marks=pytest.mark.full)],
)
def stage(
    request: pytest.FixtureRequest,
    llama: Path,
    gpt2: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    target = gpt2 if request.param == "two vocabularies" else llama
    draft = shortened(llama, tmp_path_factory.mktemp("models") / "short", DRAFT_CONTEXT)
    with running_services(target, draft) as services:
        yield Stage(services, Reference(target))


def late(answer: Answer) -> set[int]:
    """Who said the tokens that came when the draft's context had long been full."""
    left = max(0, 3 * DRAFT_CONTEXT // 2 - answer.started.prompt_tokens)
    assert len(answer.tokens) > left + 20
    return {token.source for token in answer.tokens[left:]}


def test_the_draft_drafts_far_past_its_context(stage: Stage) -> None:
    seen = set[int]()
    for text, draft_tokens, seed in (
        (SHORT[0], 5, None),
        (SHORT[1], 16, 1),
        (LONG[0], 16, None),
        (LONG[1], 5, 2),
    ):
        alone = stage.answer(text, 0, seed)
        answer = stage.answer(text, draft_tokens, seed)
        assert answer.ids == alone.ids
        assert not answer.finished.HasField("degraded")
        seen |= late(answer)
    assert {pb.TOKEN_SOURCE_DRAFT, pb.TOKEN_SOURCE_CORRECTION} <= seen


def test_the_answer_is_that_of_transformers(stage: Stage) -> None:
    for text in LONG:
        prompt = stage.reference.text_prompt(text)
        assert len(prompt) > DRAFT_CONTEXT
        force = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE)
        request = pb.GenerateRequest(text=text, max_new_tokens=NEW_TOKENS, speculation=force)
        answer = stage.services.generate(request)
        assert answer.ids == stage.reference.answer(prompt, NEW_TOKENS)
        assert answer.finished.speculation.candidates_proposed > 0
