"""Who has which turn."""

from __future__ import annotations

import pytest

from orchestrator.bench.plan import Wishes, turns, warm_up
from orchestrator.bench.way import OURS, TRANSFORMERS, Way, options
from tests.orchestrator.bench.recorded import PROMPTS

WAYS = (Way.OFF, Way.AUTO, Way.LOOKUP)
WISHES = Wishes(tokens=8, repeat=3, seed=100, temperatures=(0.0, 0.7), ways=WAYS)


def always(_way: Way, _temperature: float) -> bool:
    return True


def test_a_prompt_is_asked_in_all_ways_before_the_next() -> None:
    planned = list(turns(PROMPTS.prompts, WISHES, always))
    assert len(planned) == 3 * 2 * 2 * 3
    for start in range(0, len(planned), 3):
        together = planned[start : start + 3]
        assert {turn.way for turn in together} == set(WAYS)
        assert [turn.place for turn in together] == [0, 1, 2]
        assert len({(turn.prompt.id, turn.repetition, turn.temperature) for turn in together}) == 1


def test_each_way_is_the_first_as_often() -> None:
    planned = [turn for turn in turns(PROMPTS.prompts, WISHES, always) if turn.temperature == 0]
    first = [turn.way for turn in planned if turn.place == 0]
    assert sorted(first, key=WAYS.index) == [way for way in WAYS for _ in range(2)]


def test_all_ways_draw_with_one_seed_and_each_repetition_with_another() -> None:
    seeds = {
        (turn.prompt.id, turn.repetition): turn.seed
        for turn in turns(PROMPTS.prompts, WISHES, always)
    }
    assert sorted(seeds.values()) == [100, 101, 102, 103, 104, 105]


def test_what_does_not_work_has_no_turn() -> None:
    def works(way: Way, temperature: float) -> bool:
        return way is not Way.AUTO or temperature == 0

    planned = [*turns(PROMPTS.prompts, WISHES, works), *warm_up(WISHES, works)]
    assert not [turn for turn in planned if turn.way is Way.AUTO and turn.temperature]
    assert len(list(warm_up(WISHES, works))) == 5


def test_the_ways_of_ours_are_what_a_request_says() -> None:
    said = [options(way) for way in OURS]
    assert said == [
        {"speculation": "off"},
        {"speculation": "auto"},
        {"speculation": "force"},
        {"speculation": "auto", "draft_tokens": 0},
        {"speculation": "auto", "lookup_tokens": 0},
    ]
    with pytest.raises(ValueError, match="no way of ours"):
        options(TRANSFORMERS[0])
