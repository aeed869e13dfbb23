"""What is known of a step's time: when it came, and the passes that it had a part in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass that a step had a part in; times are those of `time.perf_counter`. `queued`:
    since when the step had waited for it; `sessions` shared it, with `tokens` of all of them."""

    queued: float
    began: float
    ended: float
    sessions: int
    tokens: int


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds that a command waited for the model, and seconds that the model ran for it, in so
    many passes; the last of them was shared by `sessions`, and ran `tokens` of all of them."""

    queue_seconds: float = 0.0
    forward_seconds: float = 0.0
    passes: int = 0
    sessions: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, passes: Sequence[Pass]) -> StepTime:
        """Of all passes of a step."""
        if not passes:
            return cls()
        return cls(
            sum(each.began - each.queued for each in passes),
            sum(each.ended - each.began for each in passes),
            len(passes),
            passes[-1].sessions,
            passes[-1].tokens,
        )


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """What a step gave, and the time it took."""

    value: T
    time: StepTime


class StepObserver(Protocol):
    """Is told of steps, in the tasks that waited for them, and of passes."""

    def stepped(self, command: str, passes: Sequence[Pass]) -> None:
        """It had these passes, whatever came of it."""

    def dropped(self, command: str, queued: float) -> None:
        """Its caller went away before its first pass."""

    def passed(self, sessions: int, tokens: int, seconds: float) -> None:
        """A pass of so many sessions and tokens is over; told on the model's thread."""

    def evicted(self) -> None:
        """A running session gave up its cache; told on the model's thread."""


class UnseenSteps:
    """Tells nobody."""

    def stepped(self, command: str, passes: Sequence[Pass]) -> None: ...

    def dropped(self, command: str, queued: float) -> None: ...

    def passed(self, sessions: int, tokens: int, seconds: float) -> None: ...

    def evicted(self) -> None: ...
