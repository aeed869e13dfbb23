"""How much time may be spent on finding out whether a draft pays. Pure."""

from __future__ import annotations

SHARE = 0.01
"""Of all time."""

MOST_STEPS = 24.0
"""What may be saved up, and what there is before any time has passed."""


class ProbeBudget:
    """Of one pair, in steps of the target."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    @property
    def allows(self) -> bool:
        """Whether something may be spent now."""
        return self._left > 0

    @property
    def full(self) -> bool:
        """Whether nothing was spent for long."""
        return self._left >= MOST_STEPS

    def passed(self, steps: float) -> None:
        """So much time went by."""
        self._left = min(MOST_STEPS, self._left + SHARE * steps)

    def spend(self, steps: float) -> None:
        """So much was lost to a probe; less than 0 if it gained something."""
        self._left = min(MOST_STEPS, self._left - steps)
