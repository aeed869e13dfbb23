"""Ways beside each other: paired, by kind, and id by id."""

from __future__ import annotations

import pytest

from orchestrator.bench.comparison import Gap, sameness, speed, unjudged
from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.bench.way import Way
from tests.orchestrator.bench.recorded import IDS, measured, reply


def per_token(answer: Reply) -> float | None:
    return answer.seconds_per_token


def test_time_per_token_is_over_what_came_after_the_first() -> None:
    answer = Reply(3, (1, 2, 3, 4, 5, 6), 2, 1.0, 3.0, rounds=2)
    assert answer.seconds_per_token == pytest.approx(0.5)
    assert answer.tokens_per_round == pytest.approx(2.0)
    assert Reply(3, (1, 2), 2, 1.0, 1.0, rounds=0).seconds_per_token is None


def test_ratios_are_of_the_same_prompt_and_repetition() -> None:
    base = [
        measured(Way.OFF, "a", reply(0.1), kind="code"),
        measured(Way.OFF, "b", reply(0.4), kind="prose"),
        measured(Way.OFF, "b", reply(0.2), kind="prose", repetition=1),
        measured(Way.OFF, "not asked the other way", reply(9.0)),
    ]
    found = speed(
        [
            measured(Way.AUTO, "b", reply(0.4), kind="prose"),
            measured(Way.AUTO, "b", reply(0.4), kind="prose", repetition=1),
            measured(Way.AUTO, "a", reply(0.05), kind="code"),
        ],
        base,
        per_token,
    )
    assert found is not None
    assert (found.base, found.overall.count) == ("off", 3)
    assert found.overall.median == pytest.approx(1.0)
    assert {each.kind: each.spread.median for each in found.kinds} == {
        "prose": pytest.approx(0.75),
        "code": pytest.approx(2.0),
    }
    assert found.worst.kind == "prose"


def test_what_cannot_be_told_is_not() -> None:
    one = [measured(Way.OFF, "a", reply(0.1, ids=(1,)))]
    assert speed(one, one, per_token) is None
    assert speed(one, [measured(Way.OFF, "b", reply(0.1))], per_token) is None
    assert sameness(one, [], unjudged) is None


def test_ids_part_where_the_first_differs_or_one_ends() -> None:
    base = [measured(Way.OFF, name, reply(0.1)) for name in "abc"]
    others = [
        measured(Way.AUTO, "a", reply(0.3)),
        measured(Way.AUTO, "b", reply(0.3, ids=(11, 12, 99, 14))),
        measured(Way.AUTO, "c", reply(0.3, ids=IDS[:2])),
    ]
    asked = []

    def judge(one: Measurement, other: Measurement, position: int) -> Gap:
        asked.append((one.way, other.prompt, position))
        return Gap(logits=0.2, spacing=0.125)

    found = sameness(others, base, judge)
    assert found is not None
    assert (found.base, found.compared, found.identical) == ("off", 3, 1)
    assert [(each.prompt, each.position) for each in found.differences] == [("b", 2), ("c", 2)]
    # Where an answer ended there is no other token to look up.
    assert asked == [("off", "b", 2)]
    assert found.differences[0].gap == Gap(0.2, 0.125)
    assert found.differences[1].gap is None


@pytest.mark.parametrize(("logits", "near"), [(0.0, True), (0.25, True), (0.26, False)])
def test_a_near_tie_lies_within_two_steps_of_the_format(logits: float, near: bool) -> None:
    assert Gap(logits, spacing=0.125).near_tie is near
