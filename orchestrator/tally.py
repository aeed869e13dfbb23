"""Counts and times of one request while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from orchestrator.events import SpeculationFigures, TimeFigures
from orchestrator.sessions import ExchangeTime


class Tally:
    """Begins with the request's arrival, `began` by the clock of `time.perf_counter`."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._first_token = 0.0
        self._prefill = self._draft = self._convert = self._verify = 0.0
        self._queue = self._network = self._plan = 0.0
        self._plain_steps = 0
        self._draft_tokens = self._unconverted = self._not_representable = 0
        self._rolled_back = self._rollbacks = 0
        self._proposed = 0
        self._lookups = self._lookup_proposed = self._lookup_examined = self._lookup_accepted = 0
        self._committed = 0
        self._lengths: list[int] = []
        self._examined: list[int] = []
        self._accepted: list[int] = []

    @property
    def committed(self) -> int:
        """Tokens of the answer."""
        return self._committed

    @property
    def convert_seconds(self) -> float:
        """Spent in conversions until now."""
        return self._convert

    def seconds_per_token(self) -> float | None:
        """From the first token until now, by the tokens after the first; None if there are none."""
        if self._committed < 2:
            return None
        spent = time.perf_counter() - self._began - self._first_token
        return spent / (self._committed - 1)

    @contextmanager
    def converting(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._convert += time.perf_counter() - began

    def prefilled(self, spent: ExchangeTime) -> None:
        self._first_token = time.perf_counter() - self._began
        self._committed += 1
        self._prefill += spent.step.forward_seconds
        self._wait(spent)

    def rolled_back(self, draft_tokens: int) -> None:
        self._rolled_back += draft_tokens
        self._rollbacks += draft_tokens > 0

    def drafted(self, draft_tokens: int, spent: ExchangeTime) -> None:
        self._draft_tokens += draft_tokens
        self._draft += spent.step.forward_seconds
        self._wait(spent)

    def unconverted(self, draft_tokens: int, not_representable: int) -> None:
        self._unconverted += draft_tokens
        self._not_representable += not_representable

    @contextmanager
    def planning(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._plan += time.perf_counter() - began

    def verified(
        self, candidates: int, accepted: int, committed: int, spent: ExchangeTime, *, copied: bool
    ) -> None:
        """A round, whose candidates were `copied` from earlier text or drafted. Where the answer
        ends inside the block, what lies past the end is not counted: every committed token but one
        that came after all candidates was examined as a candidate."""
        self._committed += committed
        self._verify += spent.step.forward_seconds
        self._wait(spent)
        if not candidates:
            self._plain_steps += 1
            return
        examined = min(committed, candidates)
        self._proposed += candidates
        if copied:
            self._lookups += 1
            self._lookup_proposed += candidates
            self._lookup_examined += examined
            self._lookup_accepted += accepted
        _count_up(self._accepted, range(accepted))
        _count_up(self._examined, range(examined))
        _count_up(self._lengths, (accepted,))

    def _wait(self, spent: ExchangeTime) -> None:
        self._queue += spent.step.queue_seconds
        self._network += spent.network_seconds

    def speculation(self) -> SpeculationFigures:
        return SpeculationFigures(
            rounds=self._plain_steps + sum(self._lengths),
            plain_steps=self._plain_steps,
            draft_tokens_proposed=self._draft_tokens,
            draft_tokens_unconverted=self._unconverted,
            candidates_proposed=self._proposed,
            candidates_examined=sum(self._examined),
            candidates_accepted=sum(self._accepted),
            draft_tokens_rolled_back=self._rolled_back,
            accepted_lengths=tuple(self._lengths),
            mean_accepted_length=sum(self._accepted) / max(1, sum(self._lengths)),
            examined_by_position=tuple(self._examined),
            accepted_by_position=tuple(self._accepted),
            rollbacks=self._rollbacks,
            draft_tokens_not_representable=self._not_representable,
            lookup_rounds=self._lookups,
            lookup_proposed=self._lookup_proposed,
            lookup_examined=self._lookup_examined,
            lookup_accepted=self._lookup_accepted,
        )

    def times(self) -> TimeFigures:
        return TimeFigures(
            total_seconds=time.perf_counter() - self._began,
            first_token_seconds=self._first_token,
            prefill_seconds=self._prefill,
            draft_seconds=self._draft,
            convert_seconds=self._convert,
            verify_seconds=self._verify,
            queue_seconds=self._queue,
            network_seconds=self._network,
            plan_seconds=self._plan,
        )


def _count_up(counts: list[int], places: Iterable[int]) -> None:
    for place in places:
        counts.extend([0] * (place + 1 - len(counts)))
        counts[place] += 1
