"""Guesses as the planner has it: by the draft model, by looking up earlier text, or not at all.

The model is got ready only once it is expected to pay, or to find out whether it does. No grpc.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from orchestrator.drafter import NO_GUESS, Failure, Guess, Verdict
from orchestrator.events import Degraded, TokenSource
from orchestrator.growing_lookup import GrowingLookup, Memory
from orchestrator.model_drafter import NOTHING, ModelDrafter, ModelGuess, Wanted
from orchestrator.observation import Observation
from orchestrator.speculation.figures import AnswerFigures, PairFigures, Verified
from orchestrator.speculation.lookup import Match
from orchestrator.speculation.planner import Ask, Copy, Outlook, Plan, Planner, RunAhead
from orchestrator.speculation.steady import Plain
from uag_common.abandon import abandon
from uag_common.errors import UagError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a round may do at most: tokens by the draft model and by lookup, 0: never. A
    `min_probability` that is given is not planned."""

    draft_tokens: int
    lookup_tokens: int
    min_probability: float | None
    run_ahead: bool


@dataclass(slots=True)
class _Round:
    """What was done in the round that runs."""

    number: int
    began: float
    plan: Plan
    match: Match | None = None
    model: ModelGuess = NOTHING
    beside: bool = False


class PlannedDrafter:
    """Of one answer. `prepare` encodes the prompt for the draft model; None: there is none, and
    `reason` tells why, where it was wanted."""

    def __init__(
        self,
        prompt_ids: Sequence[int],
        bounds: Bounds,
        pair: PairFigures,
        prepare: Callable[[], Awaitable[ModelDrafter]] | None,
        observation: Observation,
        reason: str | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._bounds = bounds
        self._figures = AnswerFigures(pair)
        self._planner = Planner(
            self._figures,
            most_draft_tokens=0 if prepare is None else bounds.draft_tokens,
            may_run_ahead=bounds.run_ahead,
        )
        self._lookup = GrowingLookup(prompt_ids, bounds.lookup_tokens, memory)
        self._prepare = prepare
        self._opening: asyncio.Task[None] | None = None
        self._model: ModelDrafter | None = None
        self._answer: list[int] = []
        self._observation = observation
        self._failure = None if reason is None else Failure.now(reason)
        self._round = _Round(0, 0.0, Plain())
        self._entering: asyncio.Handle | None = None

    @property
    def degraded(self) -> Degraded | None:
        if self._failure is not None:
            return self._failure.until_now()
        return None if self._model is None else self._model.degraded

    def start(self) -> None:
        # Once the target has been asked for its prefill.
        self._entering = asyncio.get_running_loop().call_soon(self._lookup.prepare)
        if self._planner.pays:
            self._get_ready()

    async def propose(self, round_number: int, room: int) -> Guess:
        with self._observation.planning():
            self._round = self._planned(round_number, room)
        match self._round.plan:
            case Copy(tokens) if self._round.match is not None:
                return Guess(self._round.match.ids[:tokens], TokenSource.LOOKUP)
            case Plain() if self._model is not None:
                self._model.pause()
            case Ask() | RunAhead() if self._model is not None:
                self._round.model = await self._by_model(self._model, self._round, room)
                return Guess(self._round.model.ids)
        return NO_GUESS

    def _planned(self, number: int, room: int) -> _Round:
        match = self._lookup.find(room)
        model = self._living_model()
        outlook = Outlook(
            room=room,
            match=match,
            model_ready=model is not None and model.ready,
            in_hand=0 if model is None else model.in_hand(room),
        )
        plan = self._planner.plan(outlook)
        if model is None and self._planner.wants_model:
            self._get_ready()
        return _Round(number, time.perf_counter(), plan, match)

    async def _by_model(self, model: ModelDrafter, this: _Round, room: int) -> ModelGuess:
        match this.plan:
            case Ask(tokens, least):
                given = self._bounds.min_probability
                wanted = Wanted(tokens, room, least if given is None else given)
                guess = await model.draft(this.number, wanted)
            case RunAhead(least):
                guess = await model.draft_on(this.number, least, room)
            case _:
                guess = NOTHING
        this.beside = model.runs
        if guess.seen is not None:
            self._figures.drafted(guess.seen)
        if guess.begun_seconds is not None:
            self._figures.began_ahead(guess.begun_seconds, len(guess.ids))
        return guess

    def _living_model(self) -> ModelDrafter | None:
        """The model, once it is there and has not failed."""
        if self._model is None and self._opening is not None and self._opening.done():
            # What is no UagError is a bug, and raised here.
            self._opening.result()
        failed = self._model is None or self._model.degraded is not None
        return None if failed else self._model

    def _get_ready(self) -> None:
        if self._opening is None and self._prepare is not None:
            self._planner.opened()
            self._opening = asyncio.ensure_future(self._open_model(self._prepare))

    async def _open_model(self, prepare: Callable[[], Awaitable[ModelDrafter]]) -> None:
        """Its session opens beside whatever the target does meanwhile."""
        try:
            model = await prepare()
        except UagError as error:
            log.warning("drafting cannot begin: %s", error)
            self._failure = Failure.now(str(error), self._round.number)
            return
        model.commit(self._answer)
        model.start()
        self._model = model

    def learn(self, verdict: Verdict) -> None:
        this, step = self._round, verdict.time.step
        seen = Verified(
            seconds=verdict.time.round_trip_seconds,
            forward_seconds=step.forward_seconds,
            passes=step.passes,
            sessions=step.sessions,
            tokens=step.tokens,
        )
        self._figures.verified(seen, beside_draft=this.beside)
        if isinstance(this.plan, Copy) and this.match is not None:
            self._figures.copies_examined(this.match.length, verdict.examined, verdict.accepted)
        elif verdict.proposed:
            self._learn_of_model(this.model, verdict)
        self._planner.done(
            verdict.accepted + 1,
            time.perf_counter() - this.began,
            plain=isinstance(this.plan, Plain),
        )

    def _learn_of_model(self, guess: ModelGuess, verdict: Verdict) -> None:
        self._figures.model_examined(verdict.examined, verdict.accepted)
        told = zip(range(verdict.examined), guess.probabilities, strict=False)
        for place, probability in told:
            self._figures.pair.confidence.observe(probability, accepted=place < verdict.accepted)

    def commit(self, ids: Sequence[int]) -> None:
        self._lookup.extend(ids)
        if self._model is not None:
            self._model.commit(ids)
        elif self._prepare is not None:
            self._answer.extend(ids)

    def close(self) -> None:
        if self._entering is not None:
            self._entering.cancel()
        self._lookup.close()
        self._planner.closed()
        if self._opening is not None and self._model is None:
            abandon(self._opening)
        if self._model is not None:
            self._model.close()
