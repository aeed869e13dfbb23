"""One answer as it is seen while it is written: its figures, its spans, what is counted of it.

The round loop and the drafter tell what they do; where that is kept is known here alone. No grpc.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from orchestrator.answer_metrics import AnswerMetrics
from orchestrator.drafter import Guess
from orchestrator.events import Degraded, FinishReason, TokenSource
from orchestrator.sessions import DraftCommand, ExchangeTime, Opened
from orchestrator.tally import Tally
from uag_common.telemetry.attributes import (
    ACCEPTED,
    APPENDED,
    CACHED_TOKENS,
    CHOICE,
    COMMITTED,
    CONTEXT_LENGTH,
    COPIED,
    DRAFTED,
    EXAMINED,
    KEPT,
    PLANNED,
    PROPOSED,
    ROLLED_BACK,
    ROUND,
    UNCONVERTED,
)
from uag_common.telemetry.names import CONVERT, DRAFT_WAIT, PREFILL
from uag_common.telemetry.names import ROUND as ROUND_SPAN
from uag_common.telemetry.spans import inner_span, is_recording, tell, unrecorded

SHOWN_ROUNDS = 200
"""Later rounds of an answer have no spans: nobody reads them, and a collector drops what is too
much. The totals of the request count them all."""


class _Round:
    """What is known of a round until now; `verified`: its candidates, once they are."""

    def __init__(self) -> None:
        self.planned = 0
        self.verified: int | None = None


class Observation:
    """Of the answer with that index; `began` is when its request came, by `time.perf_counter`."""

    def __init__(self, choice: int, began: float, metrics: AnswerMetrics) -> None:
        self.tally = Tally(began)
        self.reason: FinishReason | None = None
        self.degraded: Degraded | None = None
        self.rounds_not_shown = 0
        self.reopens = 0
        self.draft_wait_seconds = 0.0
        self._choice = choice
        # What is not recorded must not pay for it in each round.
        self._recorded = is_recording()
        self._metrics = metrics
        self._round = _Round()
        self._context_length = 0

    def prefill(self) -> AbstractContextManager[object]:
        """Around the prefill."""
        return inner_span(PREFILL, {CHOICE: self._choice})

    def prefilled(self, prompt_tokens: int, opened: Opened) -> None:
        self.tally.prefilled(opened.time)
        self._metrics.prefilled(prompt_tokens, opened.cached_tokens)
        self._context_length = prompt_tokens + 1
        tell({CONTEXT_LENGTH: self._context_length, CACHED_TOKENS: opened.cached_tokens})

    @contextmanager
    def round(self, number: int) -> Iterator[None]:
        """Around a round."""
        began, converted = time.perf_counter(), self.tally.convert_seconds
        this = self._round = _Round()
        with self._round_span(number):
            yield
            if this.verified is None:
                # The answer ended in the middle of it.
                return
            self._metrics.planned(this.planned)
            self._metrics.round_ended(
                time.perf_counter() - began,
                self.tally.convert_seconds - converted,
                drafted=this.verified > 0,
            )

    def _round_span(self, number: int) -> AbstractContextManager[object]:
        if not self._recorded:
            return nullcontext()
        if number > SHOWN_ROUNDS:
            self.rounds_not_shown += 1
            return unrecorded()
        return inner_span(ROUND_SPAN, {CHOICE: self._choice, ROUND: number})

    @contextmanager
    def waiting_for_draft(self) -> Iterator[None]:
        """Around a wait for the draft's prefill."""
        began = time.perf_counter()
        try:
            with inner_span(DRAFT_WAIT):
                yield
        finally:
            self.draft_wait_seconds += time.perf_counter() - began

    def reopened(self) -> None:
        """The draft had lost the context and gets it anew."""
        self.reopens += 1

    def converting(self) -> AbstractContextManager[None]:
        """Around a conversion between the vocabularies."""
        return self._converting() if self._recorded else self.tally.converting()

    @contextmanager
    def _converting(self) -> Iterator[None]:
        with inner_span(CONVERT), self.tally.converting():
            yield

    def commanded(self, command: DraftCommand, rolled_back: int) -> None:
        """What the draft is told next."""
        self._round.planned = command.max_tokens
        self.tally.rolled_back(rolled_back)
        self._metrics.rolled_back(rolled_back)
        tell(
            {
                KEPT: command.keep,
                APPENDED: len(command.append_ids),
                ROLLED_BACK: rolled_back,
                PLANNED: command.max_tokens,
            }
        )

    def drafted(self, draft_tokens: int, spent: ExchangeTime) -> None:
        self.tally.drafted(draft_tokens, spent)
        self._metrics.drafted(draft_tokens)
        tell({DRAFTED: draft_tokens})

    def unconverted(self, draft_tokens: int, not_representable: int) -> None:
        self.tally.unconverted(draft_tokens, not_representable)
        self._metrics.unconverted(draft_tokens)
        tell({UNCONVERTED: draft_tokens})

    def planning(self) -> AbstractContextManager[None]:
        """Around the choice of what to guess, which looks up earlier text."""
        return self.tally.planning()

    def verified(self, guess: Guess, accepted: int, committed: int, spent: ExchangeTime) -> None:
        candidates, copied = len(guess.ids), guess.source is TokenSource.LOOKUP
        self.tally.verified(candidates, accepted, committed, spent, copied=copied)
        self._round.verified = candidates
        examined = min(committed, candidates)
        self._metrics.committed(committed, drafted=candidates > 0)
        if copied:
            self._metrics.copied(candidates, examined, accepted)
        elif candidates:
            self._metrics.examined(candidates, examined, accepted)
        self._context_length += committed
        tell(
            {
                PROPOSED: candidates,
                COPIED: candidates if copied else 0,
                EXAMINED: examined,
                ACCEPTED: accepted,
                COMMITTED: committed,
                CONTEXT_LENGTH: self._context_length,
            }
        )

    def ended(self, reason: FinishReason | None, degraded: Degraded | None) -> None:
        """The answer is over; without a `reason` it was not finished."""
        self.reason, self.degraded = reason, degraded
        if reason is None:
            return
        self._metrics.answered(
            reason, self.tally.seconds_per_token(), self.tally.times().queue_seconds
        )
        if degraded is not None:
            self._metrics.degraded(degraded)
