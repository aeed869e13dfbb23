"""Bytes to ids: exact where the vocabulary allows it, total where it does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion import small_tokenizers as small
from tests.conversion.texts import bytes_of, raw_bytes

BYTES = Vocabulary.build(small.byte_level([("a", "b"), ("\u0120", "ab")]), Roles())
MARKS = Vocabulary.build(small.sentencepiece([("a", "b"), ("\u2581", "ab")]), Roles())
WORDS = Vocabulary.build(small.wordpiece(["the", "cat", "##s", ","]), Roles())
PIECES = Vocabulary.build(small.unigram(["\u2581", "\u2581ab", "ab", "a", "b"]), Roles())


@pytest.mark.parametrize("vocabulary", [BYTES, MARKS])
@given(data=raw_bytes)
def test_ids_spell_the_very_bytes(vocabulary: Vocabulary, data: bytes) -> None:
    result = spans(vocabulary, data)
    assert bytes_of(vocabulary, result.ids) == data
    assert result.widths == [len(vocabulary.piece(token_id) or b"") for token_id in result.ids]


def test_words_are_merged_around_bad_bytes() -> None:
    assert spans(MARKS, b" ab\xffab").widths == [3, 1, 2]


def test_a_typed_mark_is_not_a_space() -> None:
    result = spans(MARKS, "a\u2581ab ab".encode())
    assert result.widths == [1, 1, 1, 1, 2, 3]


def test_of_a_byte_without_an_id_the_replacement_takes_the_width() -> None:
    raw = json.loads(small.byte_level([]))
    raw["model"]["vocab"]["nothing"] = raw["model"]["vocab"].pop(chr(0xC0))
    lacking = Vocabulary.build(json.dumps(raw), Roles())
    assert lacking.byte_ids[0xC0] is None
    result = spans(lacking, b"a\xc0b")
    assert bytes_of(lacking, result.ids) == "a\ufffdb".encode()
    assert result.widths == [1, 0, 0, 1, 1]


@given(data=raw_bytes)
def test_a_lossy_vocabulary_covers_all_bytes(data: bytes) -> None:
    result = spans(WORDS, data)
    assert sum(result.widths) == (len(data) if result.ids else 0)


def test_a_lossy_word_stands_for_what_is_before_it_too() -> None:
    result = spans(WORDS, b"  The \xff cats,  ")
    assert bytes_of(WORDS, result.ids) == b" the cats,"
    assert result.widths == [5, 6, 1, 3]


@given(st.text(alphabet="ab \u00e9"))
def test_a_vocabulary_without_bytes_covers_all_it_can(text: str) -> None:
    data = text.encode()
    result = spans(PIECES, data)
    assert sum(result.widths) == (len(data) if result.ids else 0)
    assert PIECES.control_ids.isdisjoint(result.ids)
