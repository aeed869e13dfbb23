"""Where a text may be cut."""

from __future__ import annotations

import pytest

from orchestrator.conversion.cuts import Cuts, cuts

PIECES = [b"a", b"b", b"ab", b"c", b" ", b" a", b"abc"]


def made(*more: bytes, matched: tuple[bytes, ...] = (), pre_tokens: bool = False) -> Cuts:
    return cuts([*PIECES, *more], matched, merges=True, pre_tokens=pre_tokens)


@pytest.mark.parametrize(
    ("data", "at", "cut"),
    [
        (b"x a", 1, True),
        (b"x a", 0, False),
        (b"x a", 2, False),
        (b"x  a", 2, False),
        (b"x\n a", 2, False),
        ("x\u3000 a".encode(), 4, False),
        ("x\u00a0 a".encode(), 3, False),
        ("é a".encode(), 2, True),
        (b"\xff a", 1, True),
    ],
)
def test_a_space_after_a_non_space_is_a_cut(data: bytes, at: int, cut: bool) -> None:
    assert made().at_space(data, at) is cut


def test_a_space_inside_a_piece_is_none() -> None:
    joined = made(b"b a")
    assert not joined.at_space(b"ab a", 2)
    assert joined.at_space(b"ac a", 2)


def test_text_is_cut_where_no_piece_lies_across() -> None:
    free = made()
    assert not free.within_text(b"xabxxx", 2)
    assert free.within_text(b"xbaxxx", 2)
    assert not free.within_text(b"xabcxx", 3)


def test_a_piece_that_may_yet_come_forbids_the_cut() -> None:
    assert not made().within_text(b"xba", 2)


def test_a_matched_piece_is_found_though_its_parts_are_none() -> None:
    assert made().within_text(b"<tag><tag>", 2)
    tagged = made(b"<tag>", matched=(b"<tag>",))
    assert not tagged.within_text(b"<tag><tag>", 2)
    assert tagged.within_text(b"<tag><tag>", 5)


def test_with_pre_tokens_only_the_inside_of_words_is_known() -> None:
    ruled = made(pre_tokens=True)
    assert ruled.within_text(b"xbaxxx", 2)
    assert not ruled.within_text(b"x1axxx", 2)
    assert not ruled.within_text(b"xb1xxx", 2)


def test_without_merges_nothing_is_known() -> None:
    assert not cuts(PIECES, (), merges=False, pre_tokens=False).within_text(b"xbaxxx", 2)
