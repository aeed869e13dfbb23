"""Looking up earlier text, beside a search that looks at all of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.speculation.lookup import (
    LONGEST_KEY,
    LONGEST_MATCH,
    MOST_PLACES,
    Lookup,
    Match,
)


def places(ids: Sequence[int], size: int) -> list[int]:
    """After each earlier occurrence of the last `size` ids, the latest first."""
    key, end = ids[len(ids) - size :], len(ids)
    return [place for place in range(end - 1, size - 1, -1) if ids[place - size : place] == key]


def match_length(ids: Sequence[int], place: int) -> int:
    lengths = range(1, min(LONGEST_MATCH, place) + 1)
    return max(n for n in lengths if ids[place - n : place] == ids[len(ids) - n :])


def oracle(ids: Sequence[int], most: int, looked_at: int = MOST_PLACES) -> Match | None:
    """By the definition alone."""
    for size in range(min(LONGEST_KEY, len(ids)), 0, -1):
        if found := places(ids, size)[:looked_at]:
            # Of equal ones `max` takes the first, which is the latest.
            best = max(found, key=lambda place: match_length(ids, place))
            text = list(ids)
            for step in range(most):
                text.append(text[best + step])
            return Match(match_length(ids, best), tuple(text[len(ids) :]))
    return None


repetitive = st.builds(
    lambda part, times, rest: part * times + rest,
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.integers(1, 12),
    st.lists(st.integers(0, 3), max_size=6),
)
texts = st.one_of(
    st.lists(st.integers(0, 1), max_size=60),
    st.lists(st.integers(0, 5), max_size=80),
    st.lists(repetitive, max_size=4).map(lambda parts: [*chain(*parts)]),
)


@settings(max_examples=500, deadline=None)
@given(texts, st.integers(1, 40))
def test_the_longest_match_is_found_and_what_followed_it(ids: list[int], most: int) -> None:
    grown = Lookup()
    grown.extend(ids)
    assert grown.find(most) == oracle(ids, most)
    # Of what a text begins with, one place of each key is known.
    assert Lookup(ids).find(most) == oracle(ids, most, 1)


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, max_size=6), st.integers(1, 40))
def test_a_text_may_grow_in_any_parts(parts: list[list[int]], most: int) -> None:
    lookup, ids = Lookup(), list[int]()
    for part in parts:
        lookup.extend(part)
        ids += part
        assert lookup.find(most) == oracle(ids, most)


@pytest.mark.parametrize("ids", [(), (1,), (1, 2, 3)])
def test_nothing_is_found_where_nothing_stood_before(ids: tuple[int, ...]) -> None:
    assert Lookup(ids).find(5) is None


@pytest.mark.parametrize("most", [0, -1])
def test_nothing_is_found_where_nothing_is_wanted(most: int) -> None:
    assert Lookup((1, 1, 1)).find(most) is None


def test_a_text_that_repeats_itself_goes_on_past_its_end() -> None:
    assert Lookup((7, 8, 7, 8)).find(5) == Match(2, (7, 8, 7, 8, 7))
    assert Lookup((7, 7)).find(3) == Match(1, (7, 7, 7))


def test_a_longer_match_wins_over_a_later_one() -> None:
    grown = Lookup()
    grown.extend((1, 2, 3, 4, 5, 9, 2, 3, 4, 6, 1, 2, 3, 4))
    assert grown.find(1) == Match(4, (5,))


class Counted(int):
    """An id that counts what it is compared with."""

    comparisons = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int.__eq__(self, other) is True


def uniform(length: int) -> list[int]:
    return [5] * length


def periodic(length: int) -> list[int]:
    return [n % 7 for n in range(length)]


def almost_alike(length: int) -> list[int]:
    """Each place looks like a long match that ends just short of the longest one."""
    block = [0] * (LONGEST_MATCH - 1)
    return [item for n in range(length // LONGEST_MATCH) for item in (n + 1, *block)]


def drawn(length: int) -> list[int]:
    dice = random.Random(1)
    return [dice.randrange(3) for _ in range(length)]


@pytest.mark.parametrize("text", [uniform, periodic, almost_alike, drawn])
@pytest.mark.parametrize("length", [2_000, 40_000])
def test_a_token_costs_the_same_in_any_text(text: Callable[[int], list[int]], length: int) -> None:
    # Objects of their own: Python does not compare an object with itself.
    ids = [Counted(item) for item in text(length)]
    lookup = Lookup(ids[:-200])
    for token_id in ids[-200:]:
        Counted.comparisons = 0
        lookup.extend((token_id,))
        # The keys of each size are compared with those that stand in the dictionaries.
        keys = 2 * sum(range(1, LONGEST_KEY + 1))
        assert Counted.comparisons <= keys
        assert lookup.find(16) is not None or text is almost_alike
        assert Counted.comparisons <= 2 * keys + MOST_PLACES * LONGEST_MATCH
