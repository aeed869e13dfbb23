"""When the planner copies earlier text, in texts made of dice."""

from __future__ import annotations

import pytest

from orchestrator.speculation.figures import AnswerFigures, PairFigures, Verified
from orchestrator.speculation.lookup import Match
from orchestrator.speculation.planner import Copy, Outlook, Planner
from orchestrator.speculation.steady import Plain
from tests.speculation.copied_text import CopiedText, copy_answers

LONG = Match(12, (1, 2, 3, 4))


def never(_length: int) -> float:
    return 0.0


def after_long_matches(length: int) -> float:
    return 0.95 if length >= 5 else 0.02


@pytest.mark.parametrize("jump", [0.0, 0.5])
@pytest.mark.parametrize("token_cost", [0.005, 0.05])
@pytest.mark.parametrize("seed", [1, 2])
def test_copies_that_are_always_wrong_cost_little(
    jump: float, token_cost: float, seed: int
) -> None:
    text = CopiedText(never, jump=jump, token_cost=token_cost)
    assert text.plain / copy_answers(text, 20, seed).seconds_by_token > 0.98


@pytest.mark.parametrize("jump", [0.0, 0.5])
@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_copies_are_never_much_worse_than_none(jump: float, chance: float) -> None:
    text = CopiedText(lambda _: chance, jump=jump)
    assert text.plain / copy_answers(text, 20, 1).seconds_by_token > 0.98


@pytest.mark.parametrize(("jump", "faster"), [(0.0, 3.0), (0.5, 2.0)])
def test_copies_that_are_right_are_taken(jump: float, faster: float) -> None:
    text = CopiedText(lambda _: 0.95, jump=jump)
    assert text.plain / copy_answers(text, 20, 1).seconds_by_token > faster


@pytest.mark.parametrize(("jump", "token_cost", "tried"), [(0.0, 0.05, 0.5), (0.5, 0.005, 0.1)])
def test_what_a_match_is_worth_is_told_by_its_length(
    jump: float, token_cost: float, tried: float
) -> None:
    """What tokens cost by themselves is learnt late from passes with few of them."""
    text = CopiedText(after_long_matches, jump=jump, token_cost=token_cost)
    copied = copy_answers(text, 20, 1)
    assert copied.share(5, 12) > 0.9
    assert copied.share(1, 3) < tried
    assert text.plain / copied.seconds_by_token > 1.1


def figures_with(jump: float) -> AnswerFigures:
    figures = AnswerFigures(PairFigures(0.1))
    for tokens in (1, 2, 5, 9) * 50:
        forward = 0.03 * (1 + jump * (tokens > 1))
        figures.verified(Verified(forward, forward, 1, 1, tokens), beside_draft=False)
    return figures


def test_no_more_is_copied_than_there_is_room_for_and_was_found() -> None:
    planner = Planner(figures_with(0.0), most_draft_tokens=0, may_run_ahead=False)
    assert planner.plan(Outlook(100, LONG, model_ready=False)) == Copy(4)
    assert planner.plan(Outlook(2, LONG, model_ready=False)) == Copy(2)
    assert planner.plan(Outlook(0, LONG, model_ready=False)) == Plain()
    assert planner.plan(Outlook(100, None, model_ready=False)) == Plain()


def test_a_short_match_is_not_worth_a_pass_that_costs_half_as_much_again() -> None:
    short = Match(1, (1, 2, 3, 4))
    cheap, dear = (
        Planner(figures_with(jump), most_draft_tokens=0, may_run_ahead=False) for jump in (0.0, 0.5)
    )
    outlook = Outlook(100, short, model_ready=False)
    assert isinstance(cheap.plan(outlook), Copy)
    assert dear.plan(outlook) == Plain()
    assert isinstance(dear.plan(Outlook(100, LONG, model_ready=False)), Copy)


def test_a_copy_competes_with_the_draft() -> None:
    """A good copy is taken where drafting pays as well, a bad one is not."""
    figures = figures_with(0.0)
    for _ in range(100):
        figures.model_examined(4, 4)
    planner = Planner(figures, most_draft_tokens=8, may_run_ahead=False)
    good, bad = Match(12, tuple(range(16))), Match(12, (1, 2, 3))
    assert planner.plan(Outlook(100, good, model_ready=True)) == Copy(16)
    for _ in range(200):
        figures.copies_examined(12, 1, 0)
    assert not isinstance(planner.plan(Outlook(100, bad, model_ready=True)), Copy)
