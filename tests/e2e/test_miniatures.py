"""Two small models of other kinds and tokenizers through the three real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.prompt.chat_template import ChatMessage
from tests.reference import Reference
from tests.services import RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb

NEW_TOKENS = 40
TEXTS = (
    "The quick brown fox",
    "def add(",
    "It rained for 40 days; on",
    "Wörter mit Umlauten",
    "a",
    "Quite another text, 12345, of nothing that was learnt: 🙂 日本",
)
CHATS = (
    (ChatMessage("user", "The quick brown"),),
    (ChatMessage("system", "Be brief."), ChatMessage("user", "def add(left")),
)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def pair(
    request: pytest.FixtureRequest, llama: Path, gpt2: Path
) -> Iterator[tuple[RunningServices, Reference]]:
    target, draft = (llama, gpt2) if request.param == "llama" else (gpt2, llama)
    with running_services(target, draft) as services:
        yield services, Reference(target)


def _text(text: str, draft_tokens: int) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        text=text,
        max_new_tokens=NEW_TOKENS,
        speculation=pb.SpeculationOptions(
            mode=pb.SPECULATION_MODE_FORCE if draft_tokens else pb.SPECULATION_MODE_OFF,
            draft_tokens=draft_tokens,
        ),
    )


def test_answers_are_those_of_the_target_alone(pair: tuple[RunningServices, Reference]) -> None:
    services, reference = pair
    examined = accepted = 0
    for draft_tokens in (1, 5, 16):
        for text in TEXTS:
            answer = services.generate(_text(text, draft_tokens))
            assert answer.ids == reference.answer(reference.text_prompt(text), NEW_TOKENS), text
            assert not answer.finished.HasField("degraded")
            examined += answer.finished.speculation.candidates_examined
            accepted += answer.finished.speculation.candidates_accepted
    assert 0 < accepted < examined


def test_chat_is_rendered_with_the_targets_own_template(
    pair: tuple[RunningServices, Reference],
) -> None:
    services, reference = pair
    for chat in CHATS:
        messages = [pb.ChatMessage(role=m.role, content=m.content) for m in chat]
        request = pb.GenerateRequest(chat=pb.Chat(messages=messages), max_new_tokens=NEW_TOKENS)
        answer = services.generate(request)
        assert answer.ids == reference.answer(reference.chat_prompt(chat), NEW_TOKENS)


def test_figures_agree_with_the_tokens(pair: tuple[RunningServices, Reference]) -> None:
    services, _ = pair
    answer = services.generate(_text(TEXTS[0], 5))
    figures, sources = answer.finished.speculation, [token.source for token in answer.tokens]
    assert answer.finished.usage.completion_tokens == len(answer.tokens)
    assert sources.count(pb.TOKEN_SOURCE_DRAFT) == figures.candidates_accepted
    assert figures.rounds == answer.tokens[-1].round
    assert sum(figures.accepted_lengths) + figures.plain_steps == figures.rounds
    assert figures.candidates_accepted <= figures.candidates_examined <= figures.candidates_proposed
    assert answer.deltas[0].tokens[0].source == pb.TOKEN_SOURCE_TARGET


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3, 7])
def test_max_new_tokens_cuts_inside_a_block(
    pair: tuple[RunningServices, Reference], max_new_tokens: int
) -> None:
    services, reference = pair
    request = _text(TEXTS[0], 5)
    request.max_new_tokens = max_new_tokens
    answer = services.generate(request)
    assert answer.ids == reference.answer(reference.text_prompt(TEXTS[0]), max_new_tokens)
    assert answer.finished.finish_reason == pb.FINISH_REASON_MAX_TOKENS


def test_an_answer_ends_where_the_context_is_full(
    pair: tuple[RunningServices, Reference],
) -> None:
    services, reference = pair
    text = "🙂" * 60
    prompt = reference.text_prompt(text)
    answer = services.generate(pb.GenerateRequest(text=text, max_new_tokens=200))
    room = 256 - len(prompt)
    expected = reference.answer(prompt, room)
    assert answer.ids == expected
    if len(expected) == room:
        assert answer.finished.finish_reason == pb.FINISH_REASON_CONTEXT_LIMIT


def test_drafting_can_be_turned_off(pair: tuple[RunningServices, Reference]) -> None:
    services, _ = pair
    answer = services.generate(_text(TEXTS[0], 0))
    figures = answer.finished.speculation
    assert figures.rounds == figures.plain_steps > 0
    assert {token.source for token in answer.tokens} == {pb.TOKEN_SOURCE_TARGET}


def test_one_vocabulary_on_both_sides_passes_ids_as_they_are(llama: Path) -> None:
    """The same model on both sides: whatever is drafted is accepted."""
    reference, accepted = Reference(llama), 0
    with running_services(llama, llama) as services:
        for text in TEXTS:
            answer = services.generate(_text(text, 5))
            assert answer.ids == reference.answer(reference.text_prompt(text), NEW_TOKENS)
            figures = answer.finished.speculation
            assert figures.draft_tokens_unconverted == 0
            assert figures.candidates_accepted == figures.candidates_examined
            accepted += figures.candidates_accepted
    assert accepted > 0
