"""When a pass is held back for those who are about to come back."""

from __future__ import annotations

import pytest

from uag_common.batching.returns import Returns

PASS = 0.1


def learnt(usual: float, sessions: int = 3) -> Returns:
    """So many sessions that were away for so long each time, and left at 10."""
    returns = Returns()
    for session in range(sessions):
        for start in range(5):
            returns.left(session, start)
            returns.back(session, start + usual)
        returns.left(session, 10.0)
    return returns


def test_it_waits_for_those_who_are_back_in_a_moment() -> None:
    assert learnt(0.01).wait_until(10.0, PASS, 0) == pytest.approx(10.015)


def test_it_does_not_wait_for_those_who_stay_away_long() -> None:
    assert learnt(0.5).wait_until(10.0, PASS, 0) == 10.0


def test_it_does_not_let_many_wait_for_one() -> None:
    assert learnt(0.01, sessions=1).wait_until(10.0, PASS, 20) == 10.0
    assert learnt(0.01, sessions=1).wait_until(10.0, PASS, 1) > 10.0


def test_it_waits_a_little_longer_for_those_who_are_late() -> None:
    assert learnt(0.01).wait_until(10.016, PASS, 1) == pytest.approx(10.025)


def test_it_waits_no_longer_for_those_who_are_too_late() -> None:
    assert learnt(0.01).wait_until(10.2, PASS, 1) == 10.2


def test_nobody_is_waited_for_who_is_here_or_gone() -> None:
    returns = learnt(0.01)
    returns.back(0, 10.005)
    returns.gone(1)
    returns.gone(2)
    assert returns.wait_until(10.01, PASS, 1) == 10.01
    assert Returns().wait_until(1.0, PASS, 1) == 1.0
