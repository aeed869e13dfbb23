from __future__ import annotations

from orchestrator.growing_lookup import MOST_OF_PROMPT, GrowingLookup, Memory
from orchestrator.speculation.earlier_answers import EarlierAnswers
from orchestrator.speculation.lookup import Match


def test_a_prompt_is_looked_up_at_once() -> None:
    lookup = GrowingLookup((1, 2, 3, 1), 4)
    assert lookup.find(9) == Match(1, (2, 3, 1, 2))
    assert lookup.find(2) == Match(1, (2, 3))


def test_the_answer_is_looked_up_as_it_grows() -> None:
    lookup = GrowingLookup((1, 2, 3), 2)
    assert lookup.find(9) is None
    lookup.extend((5, 1))
    lookup.extend((2,))
    assert lookup.find(9) == Match(2, (3, 5))


def test_a_prompt_may_be_entered_before_it_is_looked_up() -> None:
    lookup = GrowingLookup((1, 2, 3), 2)
    lookup.prepare()
    lookup.extend((5, 1, 2))
    assert lookup.find(9) == Match(2, (3, 5))
    nothing = GrowingLookup((1, 1), 0)
    nothing.prepare()
    assert nothing.find(9) is None


def test_of_a_very_long_prompt_the_end_is_entered() -> None:
    lookup = GrowingLookup((1, 2, *range(10, 10 + MOST_OF_PROMPT), 3, 4, 5, 3), 5)
    assert lookup.find(2) == Match(1, (4, 5))
    lookup.extend((1,))
    assert lookup.find(2) is None


def test_nothing_is_found_where_nothing_is_wanted() -> None:
    off, full = GrowingLookup((1, 1), 0), GrowingLookup((1, 1), 5)
    off.extend((1, 1))
    assert off.find(5) is None
    assert full.find(0) is None
    assert full.find(-1) is None


def test_earlier_answers_of_the_same_key_are_looked_up() -> None:
    answers = EarlierAnswers(1000)
    first = GrowingLookup((1, 2), 5, Memory(answers, b"a"))
    first.extend((7, 8, 9, 10))
    first.close()
    assert GrowingLookup((3, 7, 8), 5, Memory(answers, b"a")).find(5) == Match(2, (9, 10))
    assert GrowingLookup((3, 7, 8), 5, Memory(answers, b"b")).find(5) is None
    # The prompt is nobody's answer.
    assert GrowingLookup((3, 1), 5, Memory(answers, b"a")).find(5) is None


def test_of_equal_matches_the_own_text_is_taken_and_a_longer_one_before_it() -> None:
    answers = EarlierAnswers(1000)
    answers.add(b"a", (4, 5, 6, 7))
    own = GrowingLookup((6, 1, 6), 5, Memory(answers, b"a"))
    assert own.find(1) == Match(1, (1,))
    assert GrowingLookup((6, 1, 5, 6), 5, Memory(answers, b"a")).find(1) == Match(2, (7,))
