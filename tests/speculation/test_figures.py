"""What is learnt of a pair and of an answer from what rounds took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.speculation.figures import (
    FIRST_LOOKUP_ACCEPTANCE,
    AnswerFigures,
    DraftedTokens,
    PairFigures,
    Verified,
)
from orchestrator.speculation.known_figures import CHEAPEST, DEAREST, MOST_PAIRS, KnownFigures
from tests.fakes import FakeModel

MODEL = FakeModel().description
STEP = 0.03


def verified(tokens: int, sessions: int = 1, seconds: float = STEP) -> Verified:
    return Verified(seconds + 0.002, seconds, 1, sessions, tokens)


def drafted(asked: int, came: int, candidates: int | None = None, lost: int = 0) -> DraftedTokens:
    given = came - lost if candidates is None else candidates
    return DraftedTokens(0.001 + 0.01 * came, 0.01 * came, came, asked, came, given, lost)


def test_a_plain_step_is_the_step() -> None:
    figures = AnswerFigures(PairFigures(0.1))
    for _ in range(30):
        figures.verified(verified(1), beside_draft=False)
    assert figures.step_seconds == pytest.approx(STEP)
    assert figures.outside_seconds == pytest.approx(0.002)
    assert figures.verification().seconds(0) == pytest.approx(STEP + 0.002)
    assert figures.verification().seconds(8) > figures.verification().seconds(0)


def test_a_step_is_inferred_from_passes_with_candidates() -> None:
    """The context grows, and plain steps are few."""
    figures = AnswerFigures(PairFigures(0.1))
    for number in range(300):
        if number % 8 == 0:
            figures.verified(verified(1), beside_draft=False)
        figures.verified(verified(5, seconds=2 * STEP), beside_draft=False)
        figures.verified(verified(3, seconds=1.5 * STEP), beside_draft=False)
    assert figures.step_seconds == pytest.approx(STEP, rel=0.1)
    assert figures.verification().seconds(4) == pytest.approx(2 * STEP + 0.002, rel=0.1)


def test_a_step_of_the_answer_follows_the_sessions_that_share_it() -> None:
    pair = PairFigures(0.1)
    figures = AnswerFigures(pair)
    for tokens in (1, 2, 5, 9, 17) * 50:
        seen = verified(tokens, seconds=STEP * (1 + 0.1 * (tokens - 1)))
        figures.verified(seen, beside_draft=False)
    for _ in range(50):
        figures.verified(verified(4, 4, seconds=1.3 * STEP), beside_draft=False)
    assert figures.sessions == 4
    assert figures.step_seconds == pytest.approx(1.3 * STEP, rel=0.05)
    # Four sessions with one candidate each: a pass of eight tokens.
    assert figures.verification().seconds(1) == pytest.approx(1.7 * STEP + 0.002, rel=0.1)


@pytest.mark.parametrize(
    "odd", [Verified(1, 1, 0, 1, 1), Verified(1, 1, 3, 1, 9), Verified(9, 9, 1, 0, 0)]
)
def test_what_cannot_be_told_apart_is_left_out(odd: Verified) -> None:
    """No pass, more than one, or a service that does not tell."""
    figures = AnswerFigures(PairFigures(0.1))
    figures.verified(verified(1), beside_draft=False)
    before = (figures.step_seconds, figures.outside_seconds)
    figures.verified(odd, beside_draft=False)
    assert (figures.step_seconds, figures.outside_seconds) == before


def test_how_much_the_draft_slows_the_target_is_learnt_from_controls() -> None:
    pair = PairFigures(0.1)
    figures = AnswerFigures(pair)
    figures.verified(verified(1), beside_draft=False)
    for _ in range(30):
        for _ in range(8):
            figures.verified(verified(1, seconds=1.5 * STEP), beside_draft=True)
        figures.verified(verified(1), beside_draft=False)
    assert pair.slowed.value == pytest.approx(1.5, rel=0.05)
    assert figures.step_seconds == pytest.approx(STEP, rel=0.05)


def test_a_later_answer_begins_with_what_the_pair_did() -> None:
    pair = PairFigures(0.1)
    first = AnswerFigures(pair)
    for _ in range(100):
        first.verified(verified(1), beside_draft=False)
        first.drafted(drafted(4, 4))
        first.model_examined(4, 4)
        first.copies_examined(3, 1, 0)
    later = AnswerFigures(pair)
    assert later.step_seconds == pytest.approx(STEP)
    assert later.draft_step_seconds == pytest.approx(0.01)
    step, draft = pair.step_seconds.value, pair.draft_step_seconds.value
    assert draft / step == pytest.approx(1 / 3)
    assert later.acceptance.at(0) > 0.9
    assert later.copied(3).at(0) < 0.2


def test_the_cost_of_a_draft_is_taken_from_the_models_until_it_has_run() -> None:
    figures = AnswerFigures(PairFigures(0.2))
    figures.verified(verified(1), beside_draft=False)
    assert figures.draft_step_seconds == pytest.approx(0.2 * STEP)
    figures.drafted(drafted(2, 2))
    assert figures.draft_step_seconds == pytest.approx(0.01)


def test_what_it_takes_to_begin_ahead_is_apart_from_the_steps() -> None:
    pair = PairFigures(0.2)
    figures = AnswerFigures(pair)
    figures.drafted(drafted(4, 4))
    for _ in range(50):
        figures.began_ahead(0.05 + 0.003, 5)
    assert pair.ahead_outside_seconds.value == pytest.approx(0.003, rel=0.1)


def test_a_pace_of_the_draft_does_not_depend_on_that_of_the_target() -> None:
    pair = PairFigures(0.2)
    AnswerFigures(pair).drafted(drafted(2, 2))
    later = AnswerFigures(pair)
    for _ in range(20):
        later.verified(verified(8, 8, seconds=10 * STEP), beside_draft=False)
    assert later.draft_step_seconds == pytest.approx(0.01)


def test_what_draft_tokens_give_is_learnt() -> None:
    pair = PairFigures(0.1)
    figures = AnswerFigures(pair)
    for _ in range(200):
        figures.drafted(drafted(8, 7, candidates=9, lost=1))
    assert pair.lost.value == pytest.approx(1)
    assert pair.per_draft_token.value == pytest.approx(1.5)
    # It went on seven times and stopped before the eighth.
    assert pair.going_on.at(0) > 0.95
    assert pair.going_on.at(7) < 0.2


def test_a_draft_that_says_nothing_is_counted_as_one_that_stops() -> None:
    pair = PairFigures(0.1)
    for _ in range(50):
        AnswerFigures(pair).drafted(replace(drafted(4, 0), passes=1, forward_seconds=0.01))
    assert pair.going_on.at(0) < 0.1
    assert pair.draft_step_seconds.value == pytest.approx(0.01)


def test_copies_begin_with_what_is_usual_after_matches_of_a_length() -> None:
    figures = AnswerFigures(PairFigures(1.0))
    for length, usual in enumerate(FIRST_LOOKUP_ACCEPTANCE, start=1):
        assert figures.copied(length).at(0) == pytest.approx(usual)
    assert figures.copied(2).at(3) == pytest.approx(figures.copied(5).at(0))


def test_the_figures_of_a_pair_are_kept_and_those_of_another_model_are_others() -> None:
    known = KnownFigures()
    target, draft = (replace(MODEL, model_id=name) for name in ("target", "draft"))
    figures = known.of(target, draft)
    assert known.of(target, draft) is figures
    assert known.of(target, None) is not figures
    assert known.of(replace(target, revision="2"), draft) is not figures


def test_the_pairs_that_were_used_last_are_kept() -> None:
    known = KnownFigures()
    first = known.of(MODEL, None)
    for number in range(MOST_PAIRS - 1):
        known.of(replace(MODEL, model_id=str(number)), None)
    assert known.of(MODEL, None) is first
    second = known.of(replace(MODEL, model_id="0"), None)
    for number in range(MOST_PAIRS):
        known.of(replace(MODEL, model_id=f"more {number}"), None)
    assert known.of(MODEL, None) is not first
    assert known.of(replace(MODEL, model_id="0"), None) is not second


@pytest.mark.parametrize(
    ("target", "draft", "cost"),
    [(1000, 250, 0.25), (10**9, 1, CHEAPEST), (1, 10**9, DEAREST), (0, 250, 1.0), (1000, 0, 1.0)],
)
def test_a_draft_is_expected_to_cost_as_much_as_its_weights(
    target: int, draft: int, cost: float
) -> None:
    models = [replace(MODEL, weight_bytes=size) for size in (target, draft)]
    assert KnownFigures().of(*models).first_draft_cost == cost
