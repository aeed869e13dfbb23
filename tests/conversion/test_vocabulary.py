"""What is known of a tokenizer."""

from __future__ import annotations

import pytest

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion import small_tokenizers as small
from tests.conversion.vocabularies import vocabulary


def test_ids_beyond_the_tokenizer_spell_nothing_and_are_not_control() -> None:
    one = Vocabulary.build(small.byte_level([]), Roles())
    for token_id in (-1, 256, 10**9):
        assert one.piece(token_id) is None
        assert not one.is_control(token_id)


def test_an_added_token_with_a_role_is_control() -> None:
    text = small.byte_level([], [small.added(256, "<end>", special=False)])
    assert Vocabulary.build(text, Roles()).piece(256) == b"<end>"
    by_role = Vocabulary.build(text, Roles(eos=frozenset([256]), primary_eos=256))
    assert by_role.piece(256) is None
    assert by_role.is_control(256)
    assert by_role.encode("<end>") != [256]


def test_an_ordinary_token_with_a_role_stays_text() -> None:
    one = Vocabulary.build(small.byte_level([]), Roles(turn_end=0))
    assert one.piece(0) == b"!"


@pytest.mark.parametrize(
    ("text", "prepends", "strips"),
    [
        (small.byte_level([]), True, False),
        (small.sentencepiece([]), True, True),
        (small.unigram(["a"]), True, True),
        (small.wordpiece(["a"]), False, True),
    ],
)
def test_the_space_before_a_text(text: str, prepends: bool, strips: bool) -> None:
    one = Vocabulary.build(text, Roles())
    assert (one.prepends_space, one.strips_leading_space) == (prepends, strips)


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize(
    ("name", "prepends", "control", "bytes_missing"),
    [
        ("codellama", True, 7, 0),
        ("distilbert", False, 5, 256),
        ("gemma2", False, 6, 0),
        ("llama2", True, 3, 0),
        ("llama31", False, 256, 0),
        ("mixtral", True, 751, 0),
        ("phi3", True, 14, 0),
        ("qwen2", False, 3, 0),
        ("smollm2", False, 17, 21),
        ("starcoder", False, 19, 14),
    ],
)
def test_the_real_tokenizers(name: str, prepends: bool, control: int, bytes_missing: int) -> None:
    one = vocabulary(name)
    assert one.prepends_space is prepends
    assert len(one.control_ids) == control
    assert one.byte_ids.count(None) == bytes_missing
    assert not one.cuts.space_inside_piece
