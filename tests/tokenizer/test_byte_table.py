"""What the ids of each family spell."""

from __future__ import annotations

import json

from tests.conversion import small_tokenizers as small
from uag_common.tokenizer.byte_table import byte_ids, pieces
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec


def parse(text: str) -> TokenizerSpec:
    return TokenizerSpec.parse(text, frozenset())


def test_byte_level_ids_spell_every_byte() -> None:
    spec = parse(small.byte_level([("\u0120", "a"), ("\u00c3", "\u00a9")]))
    table = pieces(spec)
    assert {piece for piece in table[:256] if piece} == {bytes([byte]) for byte in range(256)}
    assert table[256:] == [b" a", b"\xc3\xa9"]
    assert [table[token_id or 0] for token_id in byte_ids(spec, table)] == [
        bytes([byte]) for byte in range(256)
    ]


def test_added_text_is_spelled_as_it_stands() -> None:
    tokens = [small.added(256, "<\u2581>", special=False), small.added(257, "<s>", special=True)]
    assert pieces(parse(small.byte_level([], tokens)))[256:] == ["<\u2581>".encode(), None]


def test_sentencepiece_marks_are_spaces_and_bytes_are_bytes() -> None:
    spec = parse(small.sentencepiece([("\u2581", "a")], [small.added(287, "<t>", special=False)]))
    table = pieces(spec)
    assert table[:5] == [None, None, None, b"\x00", b"\x01"]
    assert table[259:261] == [b" ", b"a"]
    assert table[286:] == [b" a", b"<t>"]
    # "a" has an id of its own; the byte is spelled by its byte token.
    assert byte_ids(spec, table) == [*range(3, 259)]


def test_ids_without_a_token_spell_nothing() -> None:
    table = pieces(parse(small.byte_level([], [small.added(300, "x", special=False)])))
    assert table[256:] == [None] * 44 + [b"x"]


def test_words_begin_with_a_guessed_space() -> None:
    spec = parse(small.wordpiece(["the", "##se", "."]))
    assert pieces(spec) == [None, None, b" the", b"se", b"."]
    assert byte_ids(spec, pieces(spec)) == [None] * 256


def test_free_places_and_the_unknown_word_spell_nothing() -> None:
    words = ["[unused0]", "[unused]", "[", "unused0", "##]"]
    assert pieces(parse(small.wordpiece(words)))[2:] == [
        None, b" [unused]", b" [", b" unused0", b"]",
    ]  # fmt: skip
    bare = json.loads(small.wordpiece(["a"]))
    bare["added_tokens"] = []
    assert pieces(parse(json.dumps(bare))) == [b" [PAD]", None, b" a"]


def test_ideographs_are_words_without_a_space() -> None:
    table = pieces(parse(small.wordpiece(["你", "か", "##你", "你x"])))
    assert table[2:] == ["你".encode(), " か".encode(), "你".encode(), " 你x".encode()]
