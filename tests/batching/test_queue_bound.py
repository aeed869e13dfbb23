"""How many may wait to be opened, and for how long."""

from __future__ import annotations

import pytest

from uag_common.batching.queue_bound import OpeningQueue, QueueBound
from uag_common.errors import OverloadedError


def test_no_more_wait_than_may() -> None:
    queue = OpeningQueue(QueueBound(sessions=3, seconds=60))
    queue.check(2)
    with pytest.raises(OverloadedError, match="3 sessions wait") as refused:
        queue.check(3)
    assert refused.value.retry_seconds == 1.0


def test_who_would_wait_for_too_long_is_told_for_how_long() -> None:
    queue = OpeningQueue(QueueBound(sessions=100, seconds=10))
    for opened in range(30):
        queue.opened(2.0 * opened, waiting=5)
    queue.check(4)
    with pytest.raises(OverloadedError) as refused:
        queue.check(6)
    assert refused.value.retry_seconds == pytest.approx(12, rel=0.1)


def test_the_time_in_which_nobody_waits_does_not_count() -> None:
    queue = OpeningQueue(QueueBound(sessions=100, seconds=10))
    for hour in range(10):
        queue.opened(3600.0 * hour, waiting=0)
    queue.check(99)


def test_who_has_waited_for_too_long_is_told_so() -> None:
    queue = OpeningQueue(QueueBound(seconds=5))
    assert queue.overdue(10.0, now=15.0) is None
    assert "within 5 s" in str(queue.overdue(10.0, now=15.1))
