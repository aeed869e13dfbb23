"""The mask at every beginning of an answer, against a reference that lists the allowed texts."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.constraint.masks import Reference, choice, grammar, ids, regex, schema
from uag_common.constraint.matcher import Grammars
from uag_common.decoding import Constraint

CONTROL, END, TURN_END = 0, 1, 2
# Letters, longer pieces that overlap, two ids with the same bytes, an id between them that spells
# nothing, a piece that begins with a space, and the texts of the control tokens as plain text.
PIECES = [
    None,
    None,
    b"</s>",
    *(bytes([byte]) for byte in b'abc0123456789"{}[]:, -./\\n'),
    *(b"ab", b"bc", b"abc", b"ca", b"a", b"abc", b" a", b"12", b'"a', b'":', b'{"a', b"true"),
    b"",
    b"rue",
    *(bytes([byte]) for byte in b"trufels<>"),
]
PADDED = len(PIECES) + 5
EOS = [END, TURN_END]
GRAMMARS = Grammars(PIECES, EOS, PADDED)


def matching(pattern: str, letters: str, most: int) -> list[bytes]:
    """All texts of up to `most` letters that a regular expression matches."""
    texts = (
        "".join(text) for n in range(most + 1) for text in itertools.product(letters, repeat=n)
    )
    return [text.encode() for text in texts if re.fullmatch(pattern, text)]


def numbers(first: int, last: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, last + 1)]


CASES: list[tuple[Constraint, list[bytes]]] = [
    (choice("a", "abc", "abcab", "bca", "c a"), [b"a", b"abc", b"abcab", b"bca", b"c a"]),
    (choice('"a"', "a\\n", "</s>", "[12]"), [b'"a"', b"a\\n", b"</s>", b"[12]"]),
    (regex("(ab|abc|ca){1,2}b?"), matching("(ab|abc|ca){1,2}b?", "abc", 7)),
    (regex("a{0,3}"), matching("a{0,3}", "a", 3)),
    (regex("a/b|[.]/{2}"), [b"a/b", b".//"]),
    (regex(r"\\/|\/a|[/\]]{2}"), [b"\\/", b"/a", b"//", b"/]", b"]/", b"]]"]),
    (regex("(?x) a # / b\n b\n"), [b"ab"]),
    (schema({"enum": ["abc", 12, True]}), [b'"abc"', b"12", b"true"]),
    (schema({"type": "integer", "minimum": -3, "maximum": 121}), [b"-0", *numbers(-3, 121)]),
    (schema({"type": "boolean"}), [b"true", b"false"]),
    (schema({"const": 'a/"b'}), [b'"a/\\"b"']),
    (
        grammar('start: "a" tail // "b"\ntail: "a" "b" tail? | /c{1,2}/'),
        [b"a" + b"ab" * n + end for n in range(9) for end in (b"", b"c", b"cc") if n or end],
    ),
]


@pytest.mark.parametrize(("constraint", "texts"), CASES)
def test_each_beginning_allows_what_leads_to_a_text(
    constraint: Constraint, texts: list[bytes]
) -> None:
    reference = Reference(texts, PIECES, EOS)
    seen = 0
    for answer in reference.answers(6):
        matcher = GRAMMARS.matcher(constraint)
        for token_id in answer:
            assert token_id in ids(matcher.allowed())
            matcher.advance(token_id)
        assert ids(matcher.allowed()) == reference.allowed(answer), (answer, texts)
        seen += 1
    assert seen > 3


LETTERS = 'ab"\\/\n\x00\x7f\x85é\u2028🦙 '


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(LETTERS, min_size=1, max_size=5), min_size=1, max_size=5),
    merges=st.lists(st.binary(min_size=2, max_size=4), max_size=5),
    data=st.data(),
)
def test_a_choice_of_any_texts(texts: list[str], merges: list[bytes], data: st.DataObject) -> None:
    """Quoting, characters split over byte tokens, and merges across characters."""
    spelled = [text.encode() for text in texts]
    parts = [text[at : at + 3] for text in spelled for at in range(0, len(text), 2)]
    pieces = [*(bytes([byte]) for byte in range(256)), *merges, *parts, None]
    eos = [len(pieces) - 1]
    reference = Reference(spelled, pieces, eos)
    matcher = Grammars(pieces, eos, len(pieces)).matcher(choice(*texts))
    answer: list[int] = []
    while (allowed := ids(matcher.allowed())) != set(eos):
        assert allowed == reference.allowed(answer)
        answer.append(data.draw(st.sampled_from(sorted(allowed - set(eos)))))
        matcher.advance(answer[-1])
    assert reference.spelled(answer) in spelled


@settings(max_examples=40, deadline=None)
@given(text=st.text(LETTERS + "()[]{}.*+?|^$-&~#%<>dwsn", min_size=1, max_size=12))
def test_an_escaped_regular_expression_is_its_text(text: str) -> None:
    """Nothing in a regular expression ends it early, or means something in the form around it."""
    pieces = [*(bytes([byte]) for byte in range(256)), None]
    matcher = Grammars(pieces, [256], 257).matcher(regex(re.escape(text)))
    for byte in text.encode():
        assert ids(matcher.allowed()) == {byte}
        matcher.advance(byte)
    assert ids(matcher.allowed()) == {256}


def test_properties_come_in_the_order_of_the_schema() -> None:
    kinds = {"properties": {"b": {"const": 1}, "a": {"const": 2}}, "required": ["a", "b"]}
    matcher = GRAMMARS.matcher(schema({"type": "object", "additionalProperties": False, **kinds}))
    for token_id in map(PIECES.index, (b"{", b'"')):
        matcher.advance(token_id)
    assert {PIECES[at] for at in ids(matcher.allowed())} == {b"b"}


@pytest.mark.parametrize(
    "value", ["naïve 🦙", 'a "b" \\ c', {"a": [1, -2.5, None]}, [[], {}], {"é": {"x": "y\n"}}]
)
def test_json_in_every_spelling(value: object) -> None:
    """With the bytes alone, and with each pair of them as a token of its own."""
    text = json.dumps(value, ensure_ascii=False).encode()
    pairs = [text[at : at + 2] for at in range(len(text) - 1)]
    pieces = [*(bytes([byte]) for byte in range(256)), *pairs, None]
    grammars = Grammars(pieces, [len(pieces) - 1], len(pieces))
    matcher = grammars.matcher(schema({"const": value}))
    for at, byte in enumerate(text):
        allowed = ids(matcher.allowed())
        assert byte in allowed
        if at < len(pairs):
            assert 256 + at in allowed
        matcher.advance(byte)
    assert ids(matcher.allowed()) == {len(pieces) - 1}
