"""How many sessions may wait to be opened, and for how long. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from uag_common.errors import OverloadedError

WEIGHT = 0.2
LEAST_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class QueueBound:
    """Most sessions that wait, and most seconds that one is expected to wait, or does."""

    sessions: int = 64
    seconds: float = 30.0


class OpeningQueue:
    """Watches the sessions that wait to be opened. Times are seconds of one clock."""

    def __init__(self, bound: QueueBound) -> None:
        self._bound = bound
        self._interval = 0.0
        self._last = 0.0

    def check(self, waiting: int) -> None:
        """Raises OverloadedError if one more would be too many where so many wait."""
        expected = self._interval * waiting
        if waiting < self._bound.sessions and expected <= self._bound.seconds:
            return
        raise OverloadedError(
            f"{waiting} sessions wait to be opened, the next would for {expected:.0f} s; "
            "try again later",
            max(LEAST_RETRY_SECONDS, expected),
        )

    def overdue(self, queued: float, now: float) -> OverloadedError | None:
        """What to tell one who has waited for too long."""
        if now - queued <= self._bound.seconds:
            return None
        return OverloadedError(
            f"no room came free within {self._bound.seconds:g} s; try again later",
            max(LEAST_RETRY_SECONDS, self._interval),
        )

    def opened(self, now: float, waiting: int) -> None:
        """One was opened, and so many wait still."""
        if self._last:
            took = now - self._last
            self._interval = (1 - WEIGHT) * self._interval + WEIGHT * took
        # The time in which nobody waits says nothing.
        self._last = now if waiting else 0.0
