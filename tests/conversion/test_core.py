"""The core adds nothing, changes nothing and knows no control token."""

from __future__ import annotations

import json

import pytest

from orchestrator.conversion.core import core, core_json, has_pre_tokens
from tests.conversion import small_tokenizers as small
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec


def tokens(text: str, typed: str) -> list[str]:
    found: list[str] = core(core_json(TokenizerSpec.parse(text, frozenset()))).encode(typed).tokens
    return found


def test_no_prefix_space() -> None:
    assert tokens(small.byte_level([("\u0120", "a")]), "a") == ["a"]
    assert tokens(small.sentencepiece([("\u2581", "a")]), "a a") == ["a", "\u2581a"]


def test_merges_are_not_dropped_at_random() -> None:
    text = small.byte_level([("a", "b")])
    assert {tuple(tokens(text, "ab")) for _ in range(50)} == {("ab",)}


def test_control_text_is_text() -> None:
    special = small.added(256, "<s>", special=True)
    assert tokens(small.byte_level([], [special]), "<s>") == ["<", "s", ">"]


def test_added_text_keeps_its_id_when_a_control_token_before_it_goes() -> None:
    added = [small.added(256, "<s>", special=True), small.added(257, "<t>", special=False)]
    spec = TokenizerSpec.parse(small.byte_level([], added), frozenset())
    assert core(core_json(spec)).encode("<t><s>").ids[0] == 257


def test_a_unigram_model_keeps_its_words() -> None:
    text = small.unigram(["\u2581", "\u2581ab", "ab", "a"])
    assert tokens(text, "ab ab") == ["ab", "\u2581ab"]


def test_a_split_at_spaces_that_are_marks_is_no_rule() -> None:
    raw = json.loads(small.sentencepiece([("a", "\u2581")]))
    behaviour = {"behavior": "MergedWithPrevious", "invert": False}
    raw["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, **behaviour}
    spec = TokenizerSpec.parse(json.dumps(raw), frozenset())
    assert not has_pre_tokens(spec)
    assert core(core_json(spec)).encode("a a").tokens == ["a\u2581", "a"]


def test_pre_tokens_are_seen() -> None:
    raw = json.loads(small.byte_level([]))
    assert has_pre_tokens(TokenizerSpec.parse(json.dumps(raw), frozenset()))
    raw["pre_tokenizer"]["use_regex"] = False
    assert not has_pre_tokens(TokenizerSpec.parse(json.dumps(raw), frozenset()))


def test_what_the_library_refuses_is_told() -> None:
    raw = json.loads(small.byte_level([]))
    raw["model"]["merges"] = [["nothing", "known"]]
    with pytest.raises(TokenizerError, match="refused by the library"):
        core(core_json(TokenizerSpec.parse(json.dumps(raw), frozenset())))
