"""One step on its way through the passes: what it wants of the model, and who waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from uag_common.batching.plan import Wanted
from uag_common.batching.timing import Pass
from uag_common.model import Forward, Logits, Step, TokenSequence


@dataclass(slots=True, eq=False)
class Tenant:
    """A session as the model's thread knows it. A lower `number` came earlier."""

    number: int
    priority: float
    sequence: TokenSequence | None = None
    """Of its last forward."""
    used: float = 0.0
    """When it had its last pass."""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """What the first step of a session must wait for: room for so many tokens, and that it is its
    turn."""

    tokens: int
    ready: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step gave, or the error that ended it."""

    error: BaseException | None
    value: Any = None


@dataclass(slots=True, eq=False)
class Job:
    """All but `future` is used on the model's thread only, once it is handed over."""

    tenant: Tenant
    step: Callable[[], Step[Any]]
    opening: Opening | None
    future: Future[Any] = field(default_factory=Future)
    queued: float = field(default_factory=time.perf_counter)
    passes: list[Pass] = field(default_factory=list)
    wanted: Forward | None = None
    outcome: Outcome | None = None
    """Known once it is over; its caller is told by `deliver`."""
    _running: Step[Any] | None = None
    _waits_since: float = 0.0

    @property
    def started(self) -> bool:
        return self._running is not None

    @property
    def over(self) -> bool:
        """Whether it needs no more passes, or nobody waits for it any more."""
        return self.outcome is not None or self.future.done()

    @property
    def due(self) -> float:
        """When it came; a greater priority is as if it had come earlier."""
        return self.queued - self.tenant.priority

    def want(self) -> Wanted:
        """What it waits for, for the plan of the next pass."""
        turn = max(self.queued, self._waits_since) - self.tenant.priority
        return Wanted(self.due, turn, self.pending)

    @property
    def pending(self) -> int:
        """Tokens that must run for what it wants."""
        return 0 if self.wanted is None else self.wanted.sequence.pending(self.wanted.rows)

    def start(self) -> None:
        """Runs to its first forward, or to its end."""
        self._running = self.step()
        self._waits_since = self.queued
        self._resume(lambda step: next(step))

    def send(self, logits: Logits) -> None:
        """What it waited for is there: runs to its next forward, or to its end."""
        self._waits_since = time.perf_counter()
        self._resume(lambda step: step.send(logits))

    def fail(self, error: BaseException) -> None:
        """Its forward failed."""
        if self._running is None:
            self.outcome = Outcome(error)
        else:
            self._resume(lambda step: step.throw(error))

    def had(self, began: float, sessions: int, tokens: int) -> None:
        """It had a part in a pass that is over now."""
        now = time.perf_counter()
        queued = self._waits_since
        self.passes.append(Pass(queued, began, now, sessions, tokens))
        self._waits_since = self.tenant.used = now

    def close(self) -> None:
        """It gets no more passes."""
        if self._running is not None:
            self._running.close()

    def deliver(self) -> None:
        """Tells its caller what came of it."""
        if self.outcome is None:
            self.future.cancel()
            return
        try:
            if self.outcome.error is None:
                self.future.set_result(self.outcome.value)
            else:
                self.future.set_exception(self.outcome.error)
        except InvalidStateError:
            # Its caller went away at this very moment.
            pass
        finally:
            # Its error knows this frame, and both would live on.
            del self

    def _resume(self, go_on: Callable[[Step[Any]], Forward]) -> None:
        if self._running is None:
            raise RuntimeError("the step has not started")
        try:
            self.wanted = go_on(self._running)
            self.tenant.sequence = self.wanted.sequence
        except StopIteration as end:
            self.wanted = None
            self.outcome = Outcome(None, end.value)
        except BaseException as error:
            self.wanted = None
            self.outcome = Outcome(error)
            # The error knows this frame, and both would live on.
            del self
