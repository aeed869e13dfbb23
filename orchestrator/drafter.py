"""What the round loop asks of whatever guesses, and the guesser that never does. No grpc."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.events import Degraded, TokenSource
from orchestrator.sessions import ExchangeTime


@dataclass(frozen=True, slots=True)
class Guess:
    """What may come next, in target ids, and who says so."""

    ids: tuple[int, ...] = ()
    source: TokenSource = TokenSource.DRAFT


NO_GUESS = Guess()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the target said of the last guess: so many of its tokens were proposed to it and
    accepted, in so much time."""

    proposed: int
    accepted: int
    time: ExchangeTime

    @property
    def examined(self) -> int:
        """Tokens that were looked at: the accepted ones and the first rejected one."""
        return min(self.accepted + 1, self.proposed)


class Drafter(Protocol):
    """Guesses what the target says next."""

    @property
    def degraded(self) -> Degraded | None:
        """Set once drafting was wanted and has stopped."""

    def start(self) -> None:
        """Begins to prepare, without waiting for it."""

    async def propose(self, round_number: int, room: int) -> Guess:
        """At most `room` tokens; none if there is nothing to say. Never raises."""

    def learn(self, verdict: Verdict) -> None:
        """What became of the last guess, before it is committed."""

    def commit(self, ids: Sequence[int]) -> None:
        """The target committed these."""

    def close(self) -> None:
        """Frees what is held."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why and when drafting stopped; `at` is by the clock of `time.perf_counter`."""

    reason: str
    round: int
    at: float

    @classmethod
    def now(cls, reason: str, round_number: int = 0) -> Failure:
        return cls(reason, round_number, time.perf_counter())

    def until_now(self) -> Degraded:
        return Degraded(self.reason, self.round, time.perf_counter() - self.at)


class NoDrafter:
    """Never guesses: each round is a plain step. `reason` tells why, where drafting was wanted."""

    def __init__(self, reason: str | None = None) -> None:
        self._failure = None if reason is None else Failure.now(reason)

    @property
    def degraded(self) -> Degraded | None:
        return None if self._failure is None else self._failure.until_now()

    def start(self) -> None: ...

    async def propose(self, round_number: int, room: int) -> Guess:  # noqa: ARG002
        return NO_GUESS

    def learn(self, verdict: Verdict) -> None: ...

    def commit(self, ids: Sequence[int]) -> None: ...

    def close(self) -> None: ...
