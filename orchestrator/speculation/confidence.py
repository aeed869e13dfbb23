"""What a draft's own probability of a token is worth: how often the target agreed. Pure."""

from __future__ import annotations

STEPS = 10
"""Probabilities that are told apart."""

PRIOR_WEIGHT = 4.0
"""Observations that outweigh taking the draft at its word."""

KEEP = 0.995
"""What of an observation still counts after the next one."""


class Confidence:
    """Of one pair; learnt from candidates that were examined."""

    def __init__(self) -> None:
        self._accepted = [PRIOR_WEIGHT * _middle(step) for step in range(STEPS)]
        self._examined = [PRIOR_WEIGHT] * STEPS

    def observe(self, probability: float, *, accepted: bool) -> None:
        """A candidate of that probability was looked at."""
        step = min(int(probability * STEPS), STEPS - 1)
        self._accepted[step] = KEEP * self._accepted[step] + accepted
        self._examined[step] = KEEP * self._examined[step] + 1

    def threshold(self, least: float) -> float:
        """The probability from which on candidates are accepted at least so often."""
        for step in range(STEPS):
            if self._accepted[step] >= least * self._examined[step]:
                return step / STEPS
        return 1.0


def _middle(step: int) -> float:
    return (step + 0.5) / STEPS
