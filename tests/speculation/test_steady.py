"""The rates of the ways to draft: the formula of the paper, and the simulated worlds."""

from __future__ import annotations

import pytest

from orchestrator.speculation.acceptance import Known
from orchestrator.speculation.figures import AnswerFigures, DraftedTokens, PairFigures, Verified
from orchestrator.speculation.planner import Ask, Plan, RunAhead
from orchestrator.speculation.steady import (
    Ahead,
    Plain,
    Sequential,
    Steady,
    steady_ways,
)
from tests.speculation.world import World, run_fixed

STEP = 0.03


def known(cost: float, token_cost: float = 0.0, slowed: float = 1.0) -> AnswerFigures:
    """All that is to be measured, measured."""
    figures = AnswerFigures(PairFigures(cost))
    draft = cost * STEP
    for tokens in (1, 1, 3, 9, 17) * 200:
        forward = STEP * (1 + token_cost * (tokens - 1))
        figures.verified(Verified(forward, forward, 1, 1, tokens), beside_draft=False)
        figures.drafted(DraftedTokens(8 * draft, 8 * draft, 8, 8, 8, 8, 0))
    for _ in range(100):
        figures.pair.slowed.observe(slowed)
    return figures


def rate(figures: AnswerFigures, chance: float, way: Steady) -> float:
    ways = steady_ways(figures, Known((chance,)), 16, may_run_ahead=True)
    (found,) = [rated.rate for rated in ways if rated.way == way]
    return found


@pytest.mark.parametrize("chance", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("cost", [0.05, 0.5])
@pytest.mark.parametrize("tokens", [1, 4, 8])
def test_a_sequential_round_is_as_in_the_paper(chance: float, cost: float, tokens: int) -> None:
    """Theorem 3.8: (1 - a^(g+1)) / ((1 - a) (g c + 1)) times as fast."""
    figures = known(cost)
    faster = (1 - chance ** (tokens + 1)) / ((1 - chance) * (tokens * cost + 1))
    plain, drafted = (rate(figures, chance, way) for way in (Plain(), Sequential(tokens)))
    assert drafted / plain == pytest.approx(faster, rel=0.03)


def test_only_plain_steps_without_draft_tokens_and_none_ahead_where_that_is_not_wanted() -> None:
    figures = known(0.1)
    assert [r.way for r in steady_ways(figures, Known((0.9,)), 0, may_run_ahead=True)] == [Plain()]
    ways = [rated.way for rated in steady_ways(figures, Known((0.9,)), 3, may_run_ahead=False)]
    assert ways == [Plain(), Sequential(1), Sequential(2), Sequential(3)]
    ahead = [rated.way for rated in steady_ways(figures, Known((0.9,)), 3, may_run_ahead=True)]
    assert ahead[4:] == [Ahead(0), Ahead(1), Ahead(2), Ahead(3)]


def test_a_draft_that_ends_early_costs_and_gives_less() -> None:
    figures = known(0.5)
    sure = rate(figures, 0.9, Sequential(8))
    for _ in range(2000):
        figures.drafted(DraftedTokens(3 * 0.015, 3 * 0.015, 3, 8, 2, 2, 0))
    assert rate(figures, 0.9, Sequential(8)) == pytest.approx(
        rate(figures, 0.9, Sequential(3)), rel=0.05
    )
    assert rate(figures, 0.9, Sequential(8)) != pytest.approx(sure, rel=0.05)


def test_draft_tokens_that_give_more_or_fewer_candidates() -> None:
    """Of another vocabulary: the last token is no candidate yet, the others are two each."""
    as_many, more = known(0.1), known(0.1)
    for _ in range(300):
        more.drafted(DraftedTokens(8 * 0.003, 8 * 0.003, 8, 8, 8, 14, 1))
    # The draft's work is that of 5 tokens, the target sees 8.
    tokens = rate(as_many, 0.9, Sequential(8)) * (STEP + 8 * 0.1 * STEP)
    assert rate(more, 0.9, Sequential(5)) * (STEP + 5 * 0.1 * STEP) == pytest.approx(
        tokens, rel=0.05
    )


@pytest.mark.parametrize("slowed", [1.0, 1.5])
@pytest.mark.parametrize(("chance", "cost"), [(0.5, 0.3), (0.7, 0.1), (0.9, 0.2), (0.9, 0.6)])
def test_the_rates_are_those_of_the_world(chance: float, cost: float, slowed: float) -> None:
    world = World(lambda _: chance, cost, call_cost=0.0, token_cost=0.0, noise=0.0, slowed=slowed)
    figures = known(cost, slowed=slowed)
    ways: list[tuple[Steady, Plan]] = [
        *((Sequential(tokens), Ask(tokens)) for tokens in (1, 4, 8)),
        *((Ahead(least), RunAhead(least)) for least in (0, 1, 3)),
    ]
    plain = run_fixed(world, Plain(), 4, 1) * rate(figures, chance, Plain())
    for way, plan in ways:
        told = run_fixed(world, plan, 30, 1) * rate(figures, chance, way)
        assert told == pytest.approx(plain, rel=0.1), way
