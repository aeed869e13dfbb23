from __future__ import annotations

import pytest

from tests.conversion import small_tokenizers as small
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.token_table import TokenTable

SIZE = 300


def test_each_row_of_the_embedding_has_an_entry() -> None:
    text = small.sentencepiece([("a", "b")], [small.added(287, "<turn>", special=True)])
    table = TokenTable.build(text, (2, 287), SIZE)
    assert len(table.pieces) == SIZE
    assert table.pieces[3 + 0x41] == b"A"
    assert table.pieces[259:262] == (b" ", b"a", b"b")
    assert table.pieces[286] == b"ab"
    assert table.pieces[2] is None
    assert table.pieces[SIZE - 1] is None
    assert table.controls == {0: "<unk>", 1: "<s>", 2: "</s>", 287: "<turn>"}
    assert table.eos_ids == (2, 287)


def test_bytes_of_the_fallback_are_told_from_pieces_of_text() -> None:
    table = TokenTable.build(small.sentencepiece([]), (2,), SIZE)
    assert table.fallback_ids == frozenset(range(3, 259))
    assert TokenTable.build(small.byte_level([]), (), SIZE).fallback_ids == frozenset()
    assert TokenTable.build(small.unigram(["<0x41>"]), (0,), SIZE).fallback_ids == frozenset()


def test_an_added_token_that_ends_answers_spells_nothing() -> None:
    text = small.byte_level([], [small.added(256, "<end>", special=False)])
    assert TokenTable.build(text, (), SIZE).pieces[256] == b"<end>"
    assert TokenTable.build(text, (256,), SIZE).pieces[256] is None


def test_a_tokenizer_with_ids_outside_the_vocabulary_is_refused() -> None:
    text = small.byte_level([], [small.added(300, "<end>", special=True)])
    with pytest.raises(TokenizerError, match="ids up to 300, but the model's embedding has 300"):
        TokenTable.build(text, (300,), SIZE)
