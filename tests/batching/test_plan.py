"""What goes into a pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from uag_common.batching.plan import LEAST_CHUNK, SHORT_TOKENS, PassLimits, Wanted, plan

WIDE = PassLimits(parts=100, tokens=1000, prompt_tokens=100)


def wanted(due: float, pending: int, turn: float | None = None) -> Wanted:
    return Wanted(due, due if turn is None else turn, pending)


def test_all_short_work_goes_and_the_first_prompt_gets_the_rest() -> None:
    work = [wanted(3, 1), wanted(2, 400), wanted(1, 400), wanted(0, 6)]
    assert plan(work, WIDE) == [1, 0, 100, 6]


def test_what_a_prompt_leaves_the_next_one_gets() -> None:
    assert plan([wanted(1, 400), wanted(0, 40)], WIDE) == [60, 40]


def test_where_not_all_fit_those_go_that_had_no_turn_for_longest() -> None:
    limits = PassLimits(parts=2, tokens=1000, prompt_tokens=100)
    work = [wanted(0, 1, turn=9), wanted(0, 1, turn=7), wanted(0, 1, turn=8)]
    assert plan(work, limits) == [0, 1, 1]


def test_a_prompt_gets_on_however_much_short_work_there_is() -> None:
    limits = PassLimits(parts=4, tokens=40, prompt_tokens=LEAST_CHUNK)
    work = [*(wanted(0, 9) for _ in range(10)), wanted(5, 500)]
    assert plan(work, limits)[-1] == LEAST_CHUNK


def test_one_at_a_time_they_take_turns() -> None:
    limits = PassLimits(parts=1, tokens=1000, prompt_tokens=50)
    assert plan([wanted(0, 400, turn=5), wanted(1, 3, turn=4)], limits) == [0, 3]
    assert plan([wanted(0, 400, turn=5), wanted(1, 3, turn=6)], limits) == [50, 0]
    assert plan([], limits) == []


@given(
    st.lists(st.builds(wanted, st.floats(0, 9), st.integers(1, 600), st.floats(0, 9)), max_size=30),
    st.builds(
        PassLimits,
        parts=st.integers(1, 40),
        tokens=st.integers(SHORT_TOKENS + LEAST_CHUNK, 300),
        prompt_tokens=st.integers(LEAST_CHUNK, 200),
    ),
)
def test_limits_are_kept_and_somebody_always_gets_on(
    work: list[Wanted], limits: PassLimits
) -> None:
    chosen = plan(work, limits)
    assert len(chosen) == len(work)
    assert sum(map(bool, chosen)) <= limits.parts
    assert sum(chosen) <= limits.tokens
    assert bool(sum(chosen)) == bool(work)
    for each, tokens in zip(work, chosen, strict=True):
        assert tokens in (0, each.pending) if each.short else 0 <= tokens <= each.pending
    long = [tokens for each, tokens in zip(work, chosen, strict=True) if not each.short]
    assert sum(long) <= limits.prompt_tokens
