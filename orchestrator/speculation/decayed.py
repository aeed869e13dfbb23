"""A mean in which what is old counts less. Pure."""

from __future__ import annotations


class DecayedMean:
    """Starts at a guess."""

    def __init__(self, guess: float, keep: float, weight: float = 0.0) -> None:
        """`keep`: what of the mean is left after an observation, once there are many. `weight`: so
        many observations the guess counts for."""
        self._mean = guess
        self._keep = keep
        self._weight = weight

    @property
    def value(self) -> float:
        return self._mean

    @property
    def evidence(self) -> float:
        """Observations that still count."""
        return self._weight

    @property
    def known(self) -> bool:
        """Whether anything was observed."""
        return self._weight > 0

    def pull(self, to: float, share: float) -> None:
        """Moves so much of the way to a value that is expected without any observation."""
        self._mean += share * (to - self._mean)

    def observe(self, value: float, weight: float = 1.0) -> None:
        """`weight`: what it counts beside a usual observation; above 0."""
        self._weight = self._keep**weight * self._weight + weight
        self._mean += (value - self._mean) * weight / self._weight
