"""Whether it pays to hold a pass back for a moment, since sessions come back to share it. Pure.

Sessions that left a pass together come back one by one, each after a round trip to its caller. To
start with the first of them would make all others wait for a whole pass.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 0.25
"""A pass is held back for this share of a usual one, at most."""
LATENESS = 1.5
"""Most come back within so many times what they usually take."""
WEIGHT = 0.3


@dataclass(slots=True)
class _Away:
    """One session: how long it usually takes to come back, and since when it is away."""

    usual: float | None = None
    since: float | None = None

    def due(self, now: float, window: float) -> float | None:
        """When it is expected, if that is still worth waiting for."""
        if self.since is None or self.usual is None:
            return None
        last = self.since + window
        if (due := self.since + LATENESS * self.usual) > last or now >= last:
            return None
        # Who is late is still on the way.
        return due if now < due else last


class Returns:
    """The sessions that had a pass lately. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Away] = {}

    def left(self, session: int, now: float) -> None:
        """Its step is done: the next one will come."""
        self._sessions.setdefault(session, _Away()).since = now

    def back(self, session: int, now: float) -> None:
        """Its next step is here."""
        away = self._sessions.get(session)
        if away is None or away.since is None:
            return
        took = now - away.since
        away.usual = took if away.usual is None else (1 - WEIGHT) * away.usual + WEIGHT * took
        away.since = None

    def gone(self, session: int) -> None:
        """It has ended."""
        self._sessions.pop(session, None)

    def wait_until(self, now: float, pass_seconds: float, here: int) -> float:
        """Until when to hold the next pass back, in which `here` sessions would have a part: until
        the last of those is back who are expected in time, and outweigh those who wait."""
        window = WINDOW * pass_seconds
        dues = (away.due(now, window) for away in self._sessions.values())
        expected = sorted(due for due in dues if due is not None)
        best = now
        for count, due in enumerate(expected, start=1):
            # `here` sessions wait for so long, in order that `count` need not wait for a pass.
            if max(0.0, due - now) * here < pass_seconds * count:
                best = max(best, due)
        return best
