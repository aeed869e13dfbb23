"""A draft like a masked language model: word pieces, no end, a context of a few words. In one
process, with real tokenizers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.draft_context import DraftContext
from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import ChatPrompt, Prompt, TextPrompt
from orchestrator.side import Side, open_conversion
from tests.asked_drafter import AskedDrafter
from tests.conversion.rounds import accepted
from tests.conversion.vocabularies import tokenizers_directory
from tests.orchestrator.chat_templates import tokenizer_files
from tests.orchestrator.test_drafter import FakeSession
from uag_common.model import ModelDescription, Rollback, TokenRoles, tokenizer_sha256

pytestmark = pytest.mark.usefixtures("real_tokenizers")

CLS, SEP = 101, 102
TEXT = (
    "It was late when we came home. The door stood open, and nobody was there. We called, but the "
    "well-known voice didn't answer! In the kitchen (where else?) we found a letter, 3.5 lines "
    'long, which said: "I have gone to the sea. Do not wait for me, and do not forget the cat." '
)


def side(name: str, eos_ids: tuple[int, ...] = ()) -> Side:
    files = tokenizer_files(tokenizers_directory() / name)
    description = ModelDescription(
        model_id=name,
        revision="",
        architecture="Emulated",
        tokenizer_sha256=tokenizer_sha256(files),
        vocabulary_size=300_000,
        context_length=4096,
        dtype="float32",
        device="cpu",
        rollback=Rollback.TRUNCATE,
        parameter_count=0,
        weight_bytes=0,
        roles=TokenRoles(eos_ids),
    )
    return Side.build(description, files)


@pytest.fixture(scope="module", params=["smollm2", pytest.param("llama31", marks=pytest.mark.full)])
def target(request: pytest.FixtureRequest) -> Side:
    return side(request.param)


@pytest.fixture(scope="module")
def draft() -> Side:
    return side("distilbert")


class Reader:
    """Knows a text by heart. Finds the last words of its context in it, and says what follows; now
    and then it says a wrong word, half a word, or something that is none."""

    def __init__(self, vocabulary: Vocabulary, text: str, seed: int) -> None:
        self._text = vocabulary.encode(text)
        self._dice = random.Random(seed)
        self.found = 0

    def __call__(self, session: FakeSession, tokens: int) -> Sequence[int]:
        known = session.context[-3:]
        places = range(len(self._text) - 3)
        at = next((place for place in places if self._text[place : place + 3] == known), None)
        self.found += at is not None
        right = self._text[at + 3 : at + 3 + tokens] if at is not None else []
        if self._dice.random() < 0.3:
            wrong = self._dice.choice([SEP, 100, 5, 30_600, 2000, *right[::-1]])
            right = [*right[: self._dice.randrange(len(right) + 1)], wrong]
        return right


def opened(
    target: Side, draft: Side, prompt: Prompt, limit: int, reader: Reader
) -> tuple[AskedDrafter, FakeSession]:
    session = FakeSession(lambda fake, command: reader(fake, command.max_tokens))
    context = DraftContext(
        open_conversion(target, draft, target.encode(prompt)),
        draft.vocabulary,
        limit,
        draft.encoder.start_ids(),
    )
    drafter = AskedDrafter(5, context, lambda: session, wait=True)
    drafter.start()
    return drafter, session


@pytest.mark.parametrize("limit", [32, 64, 128])
@pytest.mark.parametrize("seed", range(3))
async def test_it_drafts_through_its_window(
    target: Side, draft: Side, limit: int, seed: int
) -> None:
    said = target.vocabulary.encode(TEXT * 2)
    reader = Reader(draft.vocabulary, TEXT * 2, seed)
    drafter, session = opened(target, draft, TextPrompt("Once more. " * 40), limit, reader)
    answer = [said[0]]
    drafter.commit(answer)
    right = proposed = 0
    while len(answer) < len(said):
        candidates = await drafter.propose(len(session.commands) + 1, room=30)
        count = accepted(candidates, said[len(answer) :])
        right, proposed = right + count, proposed + len(candidates)
        block = said[len(answer) :][: count + 1]
        drafter.commit(block)
        answer += block
    assert answer == said
    assert drafter.degraded is None
    assert not session.closed
    assert all(command.keep or command.append_ids[0] == CLS for command in session.commands)
    assert max(command.keep + len(command.append_ids) for command in session.commands) < limit
    assert session.context[0] == CLS
    assert reader.found > 20
    assert right > 0.4 * proposed > 0
    assert len(session.commands) < 0.7 * len(said)


def test_a_conversation_goes_on_after_what_it_reads(target: Side, draft: Side) -> None:
    """What its tokenizer puts after a text would tell it that the text is over."""
    turns = (ChatMessage("user", "Who was [SEP] there?"), ChatMessage("assistant", "Nobody."))
    for prompt in (ChatPrompt(turns), TextPrompt("Who was [SEP] there?")):
        ids = open_conversion(target, draft, target.encode(prompt)).draft_ids
        assert ids[0] == CLS
        assert SEP not in ids
        assert len(ids) > 5


def test_a_draft_without_an_end_is_a_draft(draft: Side) -> None:
    assert draft.vocabulary.roles.primary_eos is None
    ending = replace(draft.description, roles=TokenRoles((SEP,)))
    files = tokenizer_files(tokenizers_directory() / "distilbert")
    assert Side.build(ending, files).vocabulary.roles.primary_eos == SEP


async def test_a_prompt_of_blanks_is_no_failure(target: Side, draft: Side) -> None:
    reader = Reader(draft.vocabulary, TEXT, 0)
    drafter, session = opened(target, draft, TextPrompt(" \n "), 64, reader)
    assert await drafter.propose(1, room=5) == ()
    assert session.context[:1] == [CLS]
    assert drafter.degraded is None
