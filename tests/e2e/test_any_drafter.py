"""Whatever a draft says, the answer of a real target is the target's own."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reference import Reference
from tests.scripted_draft import ScriptedDraft, Turn, perfect, scripted_draft
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.errors import PeerUnavailableError
from uag_common.models import catalogue
from uag_common.models.source import resolve

pytestmark = pytest.mark.real_model

NEW_TOKENS = 24
DRAFT_TIMEOUT_SECONDS = 1.0
TEXT = "The capital of France is Paris. The capital of Japan – 日本 – is"


@dataclass(frozen=True, slots=True)
class Stage:
    """A real target, a draft that a test scripts, and what the target alone says to TEXT."""

    services: RunningServices
    draft: ScriptedDraft
    expected: Sequence[int]
    answer_bytes: bytes

    def answer(self, draft_tokens: int = 5) -> Answer:
        return self.services.generate(
            pb.GenerateRequest(
                text=TEXT,
                max_new_tokens=NEW_TOKENS,
                speculation=pb.SpeculationOptions(
                    mode=pb.SPECULATION_MODE_FORCE, draft_tokens=draft_tokens
                ),
            )
        )


@pytest.fixture(scope="module")
def stage(gpt2: Path) -> Iterator[Stage]:
    target = resolve(catalogue.DEFAULT_TARGET)
    reference = Reference(target)
    expected = reference.answer(reference.text_prompt(TEXT), NEW_TOKENS + 8)
    settings = {"draft_timeout_seconds": str(DRAFT_TIMEOUT_SECONDS)}
    with (
        scripted_draft(gpt2, vocabulary_size=600) as draft,
        running_services(
            target,
            None,
            model_settings={"dtype": "float32"},
            orchestrator_settings=settings,
            draft_address=draft.address,
        ) as services,
    ):
        whole = TEXT + reference.tokenizer.decode(expected)
        yield Stage(services, draft, expected[:NEW_TOKENS], whole.encode())


@pytest.fixture(autouse=True)
def _reset(stage: Stage) -> None:
    stage.services.wait_for_draft()
    stage.draft.servicer.script = lambda _: ()
    stage.draft.servicer.delay_seconds = 0.0


def test_perfect(stage: Stage) -> None:
    stage.draft.servicer.script = perfect(stage.draft.vocabulary, stage.answer_bytes)
    answer = stage.answer(draft_tokens=16)
    figures = answer.finished.speculation
    assert answer.ids == stage.expected
    # The last candidate of a proposal may be cut off inside a word; all others are right.
    assert figures.candidates_accepted >= figures.candidates_examined - figures.rounds > 0
    assert figures.rounds < NEW_TOKENS / 2


def test_adversarial(stage: Stage) -> None:
    """Right up to a point that moves, then wrong."""
    right = perfect(stage.draft.vocabulary, stage.answer_bytes)

    def script(turn: Turn) -> Sequence[int]:
        ids = list(right(turn))
        return [*ids[: turn.round % 4], *reversed(ids)][: turn.max_tokens]

    stage.draft.servicer.script = script
    answer = stage.answer()
    figures = answer.finished.speculation
    assert answer.ids == stage.expected
    assert 0 < figures.candidates_accepted < figures.candidates_examined


def test_random_bytes(stage: Stage) -> None:
    dice = random.Random(7)
    byte_ids = [item for item in stage.draft.vocabulary.byte_ids if item is not None]
    stage.draft.servicer.script = lambda turn: dice.choices(byte_ids, k=turn.max_tokens)
    answer = stage.answer()
    assert answer.ids == stage.expected
    assert answer.finished.speculation.draft_tokens_proposed > 0


def test_always_empty(stage: Stage) -> None:
    answer = stage.answer()
    assert answer.ids == stage.expected
    assert answer.finished.speculation.plain_steps == answer.finished.speculation.rounds


def test_always_too_long(stage: Stage) -> None:
    right = perfect(stage.draft.vocabulary, stage.answer_bytes)

    def script(turn: Turn) -> Sequence[int]:
        asked = Turn(turn.context_ids, turn.spelled, turn.round, 500)
        return [*right(asked), *range(300, 600)]

    stage.draft.servicer.script = script
    answer = stage.answer()
    assert answer.ids == stage.expected
    assert answer.finished.speculation.candidates_accepted > 0


def test_eos_at_once(stage: Stage) -> None:
    eos = stage.draft.vocabulary.roles.primary_eos
    assert eos is not None
    stage.draft.servicer.script = lambda _: (eos,)
    answer = stage.answer()
    figures = answer.finished.speculation
    assert answer.ids == stage.expected
    assert figures.candidates_examined > figures.candidates_accepted


def test_unknown_and_control_ids(stage: Stage) -> None:
    stage.draft.servicer.script = lambda _: (599, 1, 0, 2**32 - 1, 300)
    answer = stage.answer()
    assert answer.ids == stage.expected
    assert answer.finished.speculation.draft_tokens_unconverted > 0


def test_slow(stage: Stage) -> None:
    stage.draft.servicer.script = perfect(stage.draft.vocabulary, stage.answer_bytes)
    stage.draft.servicer.delay_seconds = 3 * DRAFT_TIMEOUT_SECONDS
    answer = stage.answer()
    assert answer.ids == stage.expected
    assert "did not answer within" in answer.finished.degraded.reason


def test_dying_in_round_3(stage: Stage) -> None:
    right = perfect(stage.draft.vocabulary, stage.answer_bytes)

    def script(turn: Turn) -> Sequence[int]:
        if turn.round == 3:
            raise PeerUnavailableError("the draft died")
        return right(turn)

    stage.draft.servicer.script = script
    answer = stage.answer()
    assert answer.ids == stage.expected
    assert answer.finished.degraded.since_round == 3
    assert answer.finished.degraded.reason
    assert answer.finished.speculation.candidates_accepted > 0
