"""What the planner does over many answers in simulated worlds: it settles, and it finds out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import pytest

from orchestrator.speculation.figures import AnswerFigures, PairFigures
from orchestrator.speculation.planner import (
    CONTROL_EVERY,
    PROBE_TOKENS,
    REPLANNED_EVERY,
    Ask,
    Outlook,
    Plan,
    Planner,
    RunAhead,
)
from orchestrator.speculation.probes import MOST_STEPS, SHARE
from orchestrator.speculation.steady import Plain
from tests.speculation.world import (
    World,
    Written,
    planned_answers,
    run_fixed,
    run_planned,
    seconds_by_token,
)


def changes(answers: Iterable[Written]) -> int:
    """How often the kind of rounds changed for longer than controls and probes do."""
    count = 0
    for answer in answers:
        runs = [(kind, len([*plans])) for kind, plans in groupby(answer.plans, type)]
        lasting = [kind for kind, length in runs if length >= REPLANNED_EVERY]
        count += sum(1 for _ in groupby(lasting)) - 1 if lasting else 0
    return count


def asked(answer: Written) -> int:
    """Rounds that had a part for the draft."""
    return len(answer.plans) - answer.rounds_of(Plain)


@pytest.mark.parametrize(
    ("chance", "cost", "ahead"), [(0.8, 0.1, False), (0.8, 0.1, True), (0.9, 0.6, True)]
)
def test_a_pair_that_pays_clearly_is_settled_at_once(
    chance: float, cost: float, ahead: bool
) -> None:
    answers = [*planned_answers(World(lambda _: chance, cost), 20, 1, ahead=ahead)]
    # What it costs the target to have the draft beside it is known a little later.
    settled = answers[4 if ahead else 1 :]
    assert changes(settled) == 0
    assert all(asked(answer) > 0.8 * len(answer.plans) for answer in settled)


@pytest.mark.parametrize(("chance", "cost"), [(0.5, 0.5), (0.6, 0.5), (0.55, 0.55)])
def test_a_pair_on_the_edge_changes_seldom(chance: float, cost: float) -> None:
    """About as fast with a draft as without."""
    answers = [*planned_answers(World(lambda _: chance, cost), 30, 1, ahead=False)]
    assert sum(len(answer.plans) for answer in answers) > 5000
    assert changes(answers) <= len(answers)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("cost", [0.1, 0.3])
def test_a_draft_that_becomes_good_is_found_again(cost: float, ahead: bool) -> None:
    world = World(lambda passed: 0.05 if passed < 0.5 else 0.9, cost, slowed=1.2)
    answers = [*planned_answers(world, 24, 1, ahead=ahead)]
    assert all(asked(answer) < 0.2 * len(answer.plans) for answer in answers[8:12])
    later = answers[12:]
    found = next(n for n, each in enumerate(later) if asked(each) > 0.8 * len(each.plans))
    # What may be spent is saved up within this many plain steps.
    assert found * 256 <= 1.5 * MOST_STEPS / SHARE
    assert all(asked(each) > 0.8 * len(each.plans) for each in later[found:])


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("cost", [0.1, 0.3])
def test_a_draft_that_becomes_bad_is_given_up(cost: float, ahead: bool) -> None:
    world = World(lambda passed: 0.9 if passed < 0.5 else 0.05, cost, slowed=1.2)
    answers = [*planned_answers(world, 24, 1, ahead=ahead)]
    assert all(asked(each) > 0.7 * len(each.plans) for each in answers[1:12])
    later = answers[14:]
    assert sum(map(asked, later)) < 0.4 * sum(len(each.plans) for each in later)
    assert run_fixed(world, Plain(), 4, 1) / seconds_by_token(later) > 0.95


@pytest.mark.parametrize("ahead", [False, True])
def test_a_draft_that_becomes_dear_is_given_up(ahead: bool) -> None:
    pair, dear = PairFigures(0.1), World(lambda _: 0.8, 3.0)
    before = [*planned_answers(World(lambda _: 0.8, 0.1), 6, 1, ahead=ahead, pair=pair)]
    assert all(asked(each) > 0.7 * len(each.plans) for each in before[1:])
    later = [*planned_answers(dear, 12, 2, ahead=ahead, pair=pair)][4:]
    assert run_fixed(dear, Plain(), 4, 1) / seconds_by_token(later) > 0.95


@pytest.mark.parametrize(("ahead", "known"), [(False, True), (False, False), (True, False)])
@pytest.mark.parametrize(("chance", "cost"), [(0.3, 1.0), (0.05, 0.1), (0.9, 3.0)])
def test_a_pair_that_does_not_pay_costs_little(
    chance: float, cost: float, ahead: bool, known: bool
) -> None:
    """Also where the cost of a draft token is not known before."""
    world = World(lambda _: chance, cost)
    planned = run_planned(world, 24, 1, ahead=ahead, known_cost=None if known else 0.1)
    assert run_fixed(world, Plain(), 24, 1) / planned > 0.98


def test_without_draft_tokens_the_model_is_never_asked() -> None:
    world = World(lambda _: 1.0, 0.01)
    answers = planned_answers(world, 4, 1, ahead=True, most_draft_tokens=0)
    assert all(asked(answer) == 0 for answer in answers)
    planner = Planner(AnswerFigures(PairFigures(0.01)), most_draft_tokens=0, may_run_ahead=True)
    assert not planner.pays
    assert not planner.wants_model


@pytest.mark.parametrize("ahead", [False, True])
def test_a_plain_step_comes_now_and_then(ahead: bool) -> None:
    """What drafting is compared with must be known."""
    world = World(lambda _: 0.6, 0.3, slowed=1.1)
    for answer in planned_answers(world, 8, 1, ahead=ahead):
        drafted = [
            len([*plans])
            for plain, plans in groupby(answer.plans, lambda plan: isinstance(plan, Plain))
            if not plain
        ]
        assert max(drafted) <= 1.6 * CONTROL_EVERY


def test_controls_are_rarer_where_more_is_gained() -> None:
    def plain_share(cost: float) -> float:
        answers = [*planned_answers(World(lambda _: 0.9, cost), 24, 1, ahead=False)][4:]
        rounds = sum(len(answer.plans) for answer in answers)
        return sum(answer.rounds_of(Plain) for answer in answers) / rounds

    assert 0 < 2 * plain_share(0.02) < plain_share(0.5)


def test_controls_are_few() -> None:
    world = World(lambda _: 0.7, 0.2)
    answers = [*planned_answers(world, 12, 1, ahead=True)][2:]
    rounds = sum(len(answer.plans) for answer in answers)
    plain = sum(answer.rounds_of(Plain) for answer in answers)
    assert 0 < plain <= 2 * rounds / CONTROL_EVERY + len(answers)


def test_probes_keep_within_their_budget() -> None:
    world = World(lambda _: 0.0, 1.0, noise=0.0)
    answers = [*planned_answers(world, 16, 1, ahead=False)]
    probes = [plan for answer in answers for plan in answer.plans if isinstance(plan, Ask)]
    assert all(plan.tokens <= PROBE_TOKENS for plan in probes)
    tokens = sum(answer.tokens for answer in answers)
    plain = tokens * run_fixed(world, Plain(), 1, 1)
    lost = (sum(answer.seconds for answer in answers) - plain) / world.step_seconds
    assert 0 < lost <= MOST_STEPS + SHARE * tokens + 2 * PROBE_TOKENS


def test_a_pair_that_is_known_is_drafted_with_from_the_first_round() -> None:
    pair, world = PairFigures(0.1), World(lambda _: 0.8, 0.1)
    answers = [*planned_answers(world, 4, 1, ahead=False, pair=pair)]
    planner = Planner(AnswerFigures(pair), most_draft_tokens=32, may_run_ahead=False)
    assert planner.pays
    assert isinstance(planner.plan(Outlook(100, None, model_ready=True)), Ask)
    assert isinstance(answers[-1].plans[0], Ask)


def test_nothing_is_asked_of_a_model_that_is_not_ready_or_where_there_is_no_room() -> None:
    planner = Planner(AnswerFigures(PairFigures(0.05)), most_draft_tokens=8, may_run_ahead=True)
    plans: Sequence[Plan] = [
        planner.plan(outlook)
        for _ in range(10)
        for outlook in (Outlook(100, None, model_ready=False), Outlook(0, None, model_ready=True))
    ]
    assert plans == [Plain()] * 20


def test_a_draft_that_slows_the_target_is_waited_for_instead() -> None:
    answers = [*planned_answers(World(lambda _: 0.7, 0.1, slowed=2.0), 12, 1, ahead=True)]
    last = answers[-4:]
    assert sum(each.rounds_of(Ask) for each in last) > 10 * sum(
        each.rounds_of(RunAhead) for each in last
    )


def test_a_draft_that_costs_the_target_nothing_runs_ahead() -> None:
    world = World(lambda _: 0.7, 0.3)
    answers = [*planned_answers(world, 12, 1, ahead=True)]
    last = answers[-4:]
    assert sum(each.rounds_of(RunAhead) for each in last) > 10 * sum(
        each.rounds_of(Ask) for each in last
    )
    assert seconds_by_token(last) < 0.95 * min(run_fixed(world, Ask(n), 12, 1) for n in range(1, 6))


def test_more_sessions_in_a_pass_do_not_mislead_for_long() -> None:
    """No pass runs one token alone: what that takes is never seen, however long."""
    world = World(lambda _: 0.9, 0.1, load=8)
    pair = PairFigures(0.1)
    answers = [*planned_answers(world, 48, 1, ahead=False, pair=pair)]
    assert all(asked(each) > 0.8 * len(each.plans) for each in answers)
    assert pair.pass_cost.of(16) / pair.pass_cost.of(8) == pytest.approx(1.075 / 1.035, rel=0.05)
    assert pair.step_seconds.value == pytest.approx(world.step_seconds, rel=0.25)
