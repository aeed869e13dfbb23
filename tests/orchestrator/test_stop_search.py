"""Stop sequences in a text that comes in parts."""

from __future__ import annotations

from typing import SupportsIndex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.stop_search import Match, StopSearch
from tests.conversion.pairs import some


def found(sequences: list[str], *parts: str) -> list[Match | None]:
    search = StopSearch(sequences)
    return [search.find(part) for part in parts]


@pytest.mark.parametrize(
    ("sequences", "text", "match"),
    [
        (["aab"], "aaab", Match("aab", 4)),
        (["abab", "ba"], "abab", Match("ba", 3)),
        (["b", "aab"], "aab", Match("aab", 3)),
        (["abcd", "bc"], "abcd", Match("bc", 3)),
        (["abc", "ab"], "abc", Match("ab", 2)),
        (["abcx", "bcx", "cab"], "abcabcx", Match("cab", 5)),
        (["aabaaac"], "aabaaabaaac", Match("aabaaac", 11)),
        (["x"], "abc", None),
        ([], "abc", None),
    ],
)
def test_the_match_that_ends_first_wins_and_then_the_longest(
    sequences: list[str], text: str, match: Match | None
) -> None:
    assert found(sequences, text) == [match]
    *before, last = found(sequences, *(text[: match.end] if match else text))
    assert not any(before)
    assert last == (match and Match(match.sequence, 1))


words = st.text("ab", min_size=1, max_size=8)


@settings(some, max_examples=300)
@given(sequences=st.lists(words, max_size=3), text=st.text("ab", max_size=30))
def test_what_may_yet_grow_and_what_ends_is_known_at_each_character(
    sequences: list[str], text: str
) -> None:
    search, skipping = StopSearch(sequences), StopSearch(sequences)
    for end in range(1, len(text) + 1):
        tails = [text[begin:end] for begin in range(end)]
        skipping.skip(text[end - 1])
        assert skipping.growing == max(
            (len(tail) for tail in tails for one in sequences if one[:-1].startswith(tail)),
            default=0,
        )
        match = next((Match(tail, 1) for tail in tails if tail in sequences), None)
        assert search.find(text[end - 1]) == match
        if match:
            return


def test_what_is_skipped_may_still_begin_a_match() -> None:
    search = StopSearch(["abab"])
    search.skip("abab")
    assert search.find("xab") is None
    search.skip("ab")
    assert search.find("ab") == Match("abab", 2)


class CountedText(str):
    """Counts how often one of its characters is looked at."""

    looks = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        CountedText.looks += 1
        return super().__getitem__(key)


def test_a_character_is_looked_at_a_few_times_and_no_more() -> None:
    sequences = [CountedText("a" * (255 - short) + "b") for short in range(16)]
    search = StopSearch(sequences)
    CountedText.looks = 0
    for _ in range(100):
        search.skip("a" * 200 + "c")
    assert 0 < CountedText.looks <= 4 * len(sequences) * 100 * 201
