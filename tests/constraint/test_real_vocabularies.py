"""Masks over the vocabularies of real models."""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import Callable
from functools import cache

import pytest
from tokenizers import Tokenizer

from tests.constraint.masks import choice, grammar, has, ids, regex, schema
from tests.conversion.vocabularies import tokenizer_json, tokenizers_directory
from uag_common.constraint.matcher import Grammars
from uag_common.decoding import Constraint
from uag_common.tokenizer.byte_table import pieces
from uag_common.tokenizer.tokenizer_spec import TokenizerSpec

NAMES = ("llama2", "smollm2", "gemma2", "qwen2")
PADDING = 13
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 40}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
JSON_TEXT = '{"name": "Zoë 🦙 \\"the llama\\"",\n  "age": 42, "tags": ["日本語", "a b  c", ""]}'


@cache
def eos_ids(name: str) -> tuple[int, ...]:
    manifest = json.loads((tokenizers_directory() / "manifest.json").read_text())
    roles = manifest["tokenizers"][name]["roles"]
    extra = roles.get("extra_eos", [])
    return (roles["eos"], *(extra if isinstance(extra, list) else [extra]))


@cache
def table(name: str) -> list[bytes | None]:
    return pieces(TokenizerSpec.parse(tokenizer_json(name), frozenset(eos_ids(name))))


@cache
def tokenizer(name: str) -> Tokenizer:
    return Tokenizer.from_str(tokenizer_json(name))


@cache
def grammars(name: str) -> Grammars:
    return Grammars(table(name), eos_ids(name), len(table(name)) + PADDING)


def expected(name: str, goes_on: Callable[[bytes], bool], ends: bool) -> set[int]:
    """The ids of all tokens that go on with a text, and the ends."""
    ends_with = set(eos_ids(name))
    more = {
        at
        for at, piece in enumerate(table(name))
        if piece and at not in ends_with and goes_on(piece)
    }
    return more | (ends_with if ends else set())


def begins_text(piece: bytes) -> bool:
    """Whether the bytes are UTF-8 so far, in one line."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(piece)
    except UnicodeDecodeError:
        return False
    return "\n" not in text


@cache
def spellings(name: str, text: bytes) -> list[list[int]]:
    """As the tokenizer spells it, by the shortest tokens, and by the longest."""
    by_bytes: dict[bytes, int] = {}
    for at, piece in enumerate(table(name)):
        if piece and at not in eos_ids(name):
            by_bytes.setdefault(piece, at)
    canonical = tokenizer(name).encode(text.decode(), add_special_tokens=False).ids
    found = [greedy(by_bytes, text, range(1, 40)), greedy(by_bytes, text, range(40, 0, -1))]
    if b"".join(table(name)[at] or b"" for at in canonical) == text:
        found.append(canonical)
    return found


def greedy(by_bytes: dict[bytes, int], text: bytes, lengths: range) -> list[int]:
    found: list[int] = []
    while text:
        length = next(length for length in lengths if text[:length] in by_bytes)
        found.append(by_bytes[text[:length]])
        text = text[length:]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_any_line_of_text(name: str) -> None:
    """All bytes of a character, alone or together, and no control token."""
    matcher = grammars(name).matcher(regex(".*"))
    assert ids(matcher.allowed()) == expected(name, begins_text, ends=True)


@pytest.mark.parametrize("name", NAMES)
def test_lower_case_words(name: str) -> None:
    matcher = grammars(name).matcher(regex("[a-z ]{1,10000}"))
    allowed = expected(name, lambda piece: re.fullmatch(b"[a-z ]+", piece) is not None, ends=False)
    assert ids(matcher.allowed()) == allowed


@pytest.mark.parametrize("name", NAMES)
def test_each_token_that_begins_a_choice(name: str) -> None:
    texts = ["the answer is yes", " the answer", "there\n", "日本", "\tx", "1,000"]
    spelled = [text.encode() for text in texts]

    def goes_on(piece: bytes) -> bool:
        return any(text.startswith(piece) for text in spelled)

    matcher = grammars(name).matcher(choice(*texts))
    assert ids(matcher.allowed()) == expected(name, goes_on, ends=False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (schema(PERSON), JSON_TEXT),
        (schema({"type": "object"}), JSON_TEXT),
        (regex(r"[\s\S]*tags[\s\S]*"), JSON_TEXT),
        (grammar('start: "{" REST\nREST: /[^}]+/ "}"'), JSON_TEXT),
        (schema({"const": json.loads(JSON_TEXT)}), JSON_TEXT),
    ],
    ids=["person", "object", "regex", "grammar", "const"],
)
def test_a_text_in_every_spelling(name: str, constraint: Constraint, text: str) -> None:
    for spelling in spellings(name, text.encode()):
        matcher = grammars(name).matcher(constraint)
        for token_id in spelling:
            mask = matcher.allowed()
            assert has(mask, token_id)
            assert int.from_bytes(mask or b"", "little").bit_length() <= len(table(name))
            matcher.advance(token_id)
        assert all(has(matcher.allowed(), end) for end in eos_ids(name))
        matcher.advance(eos_ids(name)[0])
        assert matcher.allowed() is None


def test_the_time_of_a_mask() -> None:
    """Over 262,144 ids. A busy machine takes longer: the bound is far from the usual 0.2 ms."""
    vocabulary = Grammars(table("gemma2"), eos_ids("gemma2"), 262_144)
    matcher = vocabulary.matcher(schema(PERSON))
    times = []
    for token_id in spellings("gemma2", JSON_TEXT.encode())[-1]:
        start = time.perf_counter()
        mask = matcher.allowed()
        times.append(time.perf_counter() - start)
        assert mask is not None
        assert len(mask) == 262_144 // 8
        matcher.advance(token_id)
    assert sorted(times)[len(times) // 2] < 0.01
