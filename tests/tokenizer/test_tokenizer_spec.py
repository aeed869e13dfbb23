"""What `tokenizer.json` says, and what is refused; the file comes from a peer."""

from __future__ import annotations

import json

import pytest

from tests.conversion import small_tokenizers as small
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.tokenizer_spec import AddedToken, Family, TokenizerSpec


def parse(text: str, *control: int) -> TokenizerSpec:
    return TokenizerSpec.parse(text, frozenset(control))


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (small.byte_level([]), Family.BYTE_LEVEL),
        (small.sentencepiece([]), Family.SENTENCEPIECE),
        (small.unigram(["\u2581a"]), Family.SENTENCEPIECE),
        (small.wordpiece(["a"]), Family.WORDPIECE),
    ],
)
def test_families(text: str, family: Family) -> None:
    assert parse(text).family is family


def test_control_is_special_or_strips_or_has_a_role() -> None:
    tokens = [
        small.added(256, "<s>", special=True),
        small.added(257, "</s>", special=False, rstrip=True),
        small.added(258, "<end>", special=False),
        small.added(259, "<table>", special=False),
    ]
    assert parse(small.byte_level([], tokens), 258).added == (
        AddedToken(256, "<s>", control=True),
        AddedToken(257, "</s>", control=True),
        AddedToken(258, "<end>", control=True),
        AddedToken(259, "<table>", control=False),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        json.dumps({"model": {}, "added_tokens": []}),
        json.dumps({"model": {"type": "BPE", "vocab": {}, "merges": []}, "added_tokens": []}),
        json.dumps(
            {"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}, "added_tokens": []}
        ),
        json.dumps({"model": {"type": "BPE", "vocab": ["a"], "merges": []}, "added_tokens": []}),
        json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0}}, "added_tokens": []}),
        json.dumps(
            {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": [3]}
        ),
        json.dumps(
            {
                "model": {
                    "type": "BPE",
                    "vocab": {"a": 0},
                    "merges": [],
                    "end_of_word_suffix": "w",
                },
                "added_tokens": [],
            }
        ),
    ],
)
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(TokenizerError):
        parse(text)


def test_components_are_flat() -> None:
    spec = parse(small.sentencepiece([]))
    assert [part["type"] for part in spec.components("normalizer")] == ["Prepend", "Replace"]
    assert [*spec.components("pre_tokenizer")] == []


def test_word_pieces_that_cannot_read_all_text_are_refused() -> None:
    raw = json.loads(small.wordpiece(["a"]))
    assert parse(json.dumps(raw)).unknown_word == "[UNK]"
    raw["model"]["unk_token"] = "[NONE]"  # noqa: S105
    with pytest.raises(TokenizerError, match="unknown words"):
        parse(json.dumps(raw))
