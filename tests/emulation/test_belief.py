"""With the smaller of the two real vocabularies as the draft's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.emulation.belief import Belief, Said
from benchmarks.emulation.coins import Coins
from benchmarks.emulation.recordings import Recording, of_target
from benchmarks.emulation.tokenizers import TokenizedModel
from orchestrator.cli.services import DEFAULT_PAIR
from orchestrator.conversion.vocabulary import Vocabulary

pytestmark = pytest.mark.real_model
RECORDING = of_target(DEFAULT_PAIR.draft)[0]
TOKENS = len(RECORDING.ids)
WRONG_AT = 7


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return TokenizedModel.named(DEFAULT_PAIR.target).vocabulary


def coins(*wrong: int) -> Coins:
    right = tuple(at not in wrong for at in range(TOKENS))
    return Coins(right, tuple(0.9 if is_right else 0.1 for is_right in right))


def said(belief: Belief, begin: int, end: int) -> Iterator[Said]:
    while begin < end:
        word = belief.after(begin)
        yield word
        begin += word.width


def spelled(vocabulary: Vocabulary, words: list[Said]) -> bytes:
    return b"".join(vocabulary.spell([word.id for word in words]))


def test_a_draft_that_is_always_right_says_the_recorded_text(vocabulary: Vocabulary) -> None:
    whole = RECORDING.text
    words = list(said(Belief(RECORDING, coins(), vocabulary), 0, len(whole)))
    assert spelled(vocabulary, words)[: len(whole)] == whole


def test_after_its_end_it_begins_again(vocabulary: Vocabulary) -> None:
    whole = RECORDING.text
    begin = len(whole) - 40
    words = list(said(Belief(RECORDING, coins(), vocabulary), begin, 2 * len(whole)))
    assert spelled(vocabulary, words).startswith(whole[begin:] + whole)


def test_a_wrong_token_is_other_text_at_its_place_alone(vocabulary: Vocabulary) -> None:
    begin, end = RECORDING.ends[WRONG_AT - 1 : WRONG_AT + 1]
    belief = Belief(RECORDING, coins(WRONG_AT), vocabulary)
    text = spelled(vocabulary, list(said(belief, 0, end + 40)))
    assert text[:begin] == RECORDING.text[:begin]
    assert text[begin:end] == RECORDING.wrong[WRONG_AT] != RECORDING.text[begin:end]
    assert text[end : end + 40] == RECORDING.text[end : end + 40]


def test_it_goes_on_from_any_place(vocabulary: Vocabulary) -> None:
    """A correction of the target may end inside a token that the draft would have said."""
    belief = Belief(RECORDING, coins(), vocabulary)
    for begin in range(60):
        text = spelled(vocabulary, list(said(belief, begin, begin + 20)))
        assert text[:20] == RECORDING.text[begin : begin + 20]


def test_probabilities_are_those_of_the_target_tokens_together(vocabulary: Vocabulary) -> None:
    belief = Belief(RECORDING, coins(WRONG_AT), vocabulary)
    product = 1.0
    for word in said(belief, 0, RECORDING.ends[WRONG_AT]):
        product *= word.probability
    assert product == pytest.approx(0.1 * 0.9**WRONG_AT)


@pytest.mark.parametrize("recording", of_target(DEFAULT_PAIR.target), ids=lambda r: r.name)
def test_what_is_recorded_can_be_played(recording: Recording, vocabulary: Vocabulary) -> None:
    """The ids are those of the text, or a right candidate would be a wrong one; wrong text takes
    the place of the right one, byte for byte."""
    assert vocabulary.encode(recording.text.decode()) == list(recording.ids)
    assert vocabulary.spell(list(recording.ids)) == list(recording.spelled)
    replaced = [pair for pair in zip(recording.spelled, recording.wrong, strict=True) if pair[1]]
    assert len(replaced) >= 0.95 * len(recording.ids)
    for right, wrong in replaced:
        assert wrong is not None
        assert wrong != right
        assert len(wrong) == len(right)
