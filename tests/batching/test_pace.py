"""How much of a prompt may share a pass, on a model whose passes take a known time."""

from __future__ import annotations

import random

import pytest

from uag_common.batching.pace import MOST_TOKENS, STRETCH, Pace
from uag_common.batching.plan import LEAST_CHUNK


@pytest.mark.parametrize("token_seconds", [0.0005, 0.001, 0.003])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_passes_with_a_prompt_take_at_most_so_many_times_as_long(
    token_seconds: float, noise: float
) -> None:
    dice, pace, short = random.Random(1), Pace(), 0.05
    for _ in range(10):
        pace.observe(0, short * dice.uniform(1 - noise, 1 + noise))
    stretches = []
    for _ in range(200):
        tokens = pace.prompt_tokens(shared=True)
        seconds = short * dice.uniform(1 - noise, 1 + noise) + tokens * token_seconds
        pace.observe(tokens, seconds)
        stretches.append(seconds / short)
    assert max(stretches) < STRETCH + 0.5
    # The room is used, too.
    assert max(stretches) > min(STRETCH - 0.2, 1 + LEAST_CHUNK * token_seconds / short)


def test_alone_a_prompt_gets_large_pieces() -> None:
    pace = Pace()
    assert pace.prompt_tokens(shared=False) == MOST_TOKENS
    assert pace.prompt_tokens(shared=True) == LEAST_CHUNK


def test_it_follows_a_model_that_gets_slower() -> None:
    pace = Pace()
    pace.observe(0, 0.05)
    for _ in range(20):
        pace.observe(pace.prompt_tokens(shared=True), 0.06)
    before = pace.prompt_tokens(shared=True)
    for _ in range(20):
        tokens = pace.prompt_tokens(shared=True)
        pace.observe(tokens, 0.05 + tokens * 0.01)
    assert pace.prompt_tokens(shared=True) < before
    assert pace.prompt_tokens(shared=True) == LEAST_CHUNK


def test_pieces_that_cost_nothing_are_as_large_as_others() -> None:
    """What a token costs gets smaller than any number then."""
    pace = Pace()
    pace.observe(0, 0.05)
    pace.observe(16, 0.06)
    for _ in range(5000):
        assert pace.prompt_tokens(shared=True) <= MOST_TOKENS
        pace.observe(16, 0.05)
