from __future__ import annotations

from orchestrator.speculation.earlier_answers import EarlierAnswers
from orchestrator.speculation.lookup import Match


def test_nothing_is_kept_where_nothing_may_be() -> None:
    answers = EarlierAnswers(0)
    answers.add(b"a", (1, 2, 3))
    assert answers.match(b"a", (1, 2), 5) is None


def test_one_answer_does_not_go_on_with_the_next() -> None:
    answers = EarlierAnswers(100)
    answers.add(b"a", (1, 2, 3))
    answers.add(b"a", (4, 5, 6))
    assert answers.match(b"a", (1, 2), 5) == Match(2, (3,))
    assert answers.match(b"a", (2, 3), 5) is None
    assert answers.match(b"a", (3, 4), 5) == Match(1, (5, 6))


def test_the_oldest_is_forgotten_first() -> None:
    answers = EarlierAnswers(40)
    for number in range(100):
        answers.add(b"a", (number, 1000 + number, 2000 + number))
    assert answers.match(b"a", (0,), 2) is None
    assert answers.match(b"a", (99,), 2) == Match(1, (1099, 2099))


def test_all_keys_together_are_bounded() -> None:
    answers = EarlierAnswers(100)
    for number in range(50):
        answers.add(bytes([number]), tuple(range(20)))
    kept = [n for n in range(50) if answers.match(bytes([n]), (3,), 1) is not None]
    assert kept == [*range(50 - len(kept), 50)]
    assert 0 < len(kept) <= 5
    assert answers.match(bytes([49]), (3,), 1) == Match(1, (4,))


def test_a_long_answer_is_kept_as_far_as_there_is_room() -> None:
    answers = EarlierAnswers(20)
    answers.add(b"a", tuple(range(100)))
    assert answers.match(b"a", (3,), 2) == Match(1, (4, 5))
    assert answers.match(b"a", (50,), 2) is None
