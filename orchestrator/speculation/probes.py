"""How much time may be spent on finding out whether a draft pays. Pure."""

from __future__ import annotations

SHARE = 0.01
"""Of all time."""

FIRST_STEPS = 24.0
"""What there is before any time has passed."""

MOST_STEPS = 400.0
"""What must be saved up at most before a pair that cannot pay is tried again."""


class ProbeBudget:
    """Of one pair, in steps of the target."""

    def __init__(self) -> None:
        self._left = self._full = FIRST_STEPS
        self._probing = False

    @property
    def allows(self) -> bool:
        """Whether something may be spent now on a pair that might pay. One answer at a time
        probes: what it finds out is known to all."""
        return self._left > 0 and not self._probing

    @property
    def full(self) -> bool:
        """Whether it is so long since a pair that cannot pay was tried that all may be otherwise.
        Each time in vain makes it twice as long."""
        return self._left >= self._full and not self._probing

    def begin(self, steps: float) -> None:
        """An answer begins to probe, and spends so much on it already."""
        self.spend(steps)
        self._probing = True

    def end(self) -> None:
        """It has ended."""
        self._probing = False

    def passed(self, steps: float) -> None:
        """So much time went by."""
        self._left = min(self._full, self._left + SHARE * steps)

    def spend(self, steps: float) -> None:
        """So much was lost to a probe; less than 0 if it gained something."""
        if self._left >= self._full:
            self._full = min(MOST_STEPS, 2 * self._full)
            self._left = min(self._left, self._full / 2)
        self._left = min(self._full, self._left - steps)

    def paid(self) -> None:
        """The pair pays now."""
        self._full = FIRST_STEPS
        self._left = min(self._left, self._full)
