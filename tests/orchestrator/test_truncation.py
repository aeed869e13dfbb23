"""What is left of a prompt that must be short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.prompt.truncation import truncate

BOS = (1,)
ids = st.lists(st.integers(1, 9), max_size=12).map(tuple)


@pytest.mark.parametrize(
    ("prompt", "length", "start", "expected"),
    [
        ((5, 6, 7, 8), 2, (), (7, 8)),
        ((1, 5, 6, 7), 2, BOS, (1, 6, 7)),
        ((1, 5, 6, 7), 3, BOS, (1, 5, 6, 7)),
        ((5, 6, 7), 2, BOS, (6, 7)),
        ((1, 2, 5, 6, 7), 1, (1, 2), (1, 2, 7)),
        ((1,), 1, BOS, (1,)),
        ((1, 1, 5), 1, BOS, (1, 5)),
        ((), 1, BOS, ()),
    ],
)
def test_the_last_tokens_are_kept_and_the_start(
    prompt: tuple[int, ...], length: int, start: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert truncate(prompt, length, start) == expected


@given(prompt=ids, length=st.integers(1, 14), start=st.sampled_from([(), BOS, (1, 2)]))
def test_it_is_the_end_of_the_prompt_and_all_of_one_that_is_short(
    prompt: tuple[int, ...], length: int, start: tuple[int, ...]
) -> None:
    kept = truncate(prompt, length, start)
    begins = prompt[: len(start)] == start
    body = kept[len(start) :] if begins else kept
    assert prompt[len(prompt) - len(body) :] == body
    assert len(body) == min(length, len(prompt) - (len(start) if begins else 0))
    assert (kept == prompt) == (len(prompt) <= length + (len(start) if begins else 0))
