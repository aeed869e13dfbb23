"""Where whole characters end, in text and in what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.utf8 import character_at, character_before, is_boundary, utf8_end


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"", 0),
        (b"ab", 2),
        (b"a\xc3", 1),
        (b"a\xc3\xa9", 3),
        (b"\xe4\xbd", 0),
        (b"\xe4\xbd\xa0", 3),
        (b"a\xf0\x9f\x9a", 1),
        (b"a\xf0\x9f\x9a\x80", 5),
        (b"a\xf0\x9f\x9a\x80\xf0", 5),
        # Provably bad: no character begins so.
        (b"a\xff", 2),
        (b"a\xc0", 2),
        (b"a\xc1\x80", 3),
        (b"a\xe0\x80", 3),
        (b"a\xed\xa0", 3),
        (b"a\xf4\x90", 3),
        (b"a\xf5", 2),
        (b"\x80\x80\x80\x80", 4),
    ],
)
def test_the_end_of_the_whole_characters(data: bytes, end: int) -> None:
    assert utf8_end(data) == end
    assert utf8_end(bytearray(data)) == end


def test_bytes_before_the_start_do_not_count() -> None:
    assert utf8_end(b"\xf0\x90") == 0
    assert utf8_end(b"\xf0\x90", 1) == 2
    assert utf8_end(b"\xf0", 1) == 1


@given(st.text())
def test_boundaries_are_those_of_the_characters(text: str) -> None:
    data = text.encode()
    ends = {len(text[:at].encode()) for at in range(len(text) + 1)}
    assert {at for at in range(len(data) + 1) if is_boundary(data, at)} == ends
    for character, start in zip(text, sorted(ends), strict=False):
        assert character_at(data, start) == character
        assert character_before(data, start + len(character.encode())) == character


@given(st.text(), st.integers(1, 3))
def test_an_unfinished_character_is_held(text: str, missing: int) -> None:
    whole = text.encode()
    character = "\U0001f680".encode()
    assert utf8_end(whole + character[:-missing]) == len(whole)


def test_no_character_lies_across_bad_bytes() -> None:
    assert all(is_boundary(b"\x80\x80\x80\x80\x80", at) for at in range(6))
    assert is_boundary(b"\xc3\xa9\x80", 2)
    assert not is_boundary(b"\xc3\xa9\x80", 1)
    # The replacement character is a character like any other.
    assert not is_boundary("\ufffd".encode(), 1)
    assert character_before(b"\xff", 1) == "\ufffd"
    assert character_at(b"\xe4\xbd", 0) == "\ufffd"
