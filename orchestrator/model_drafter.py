"""Asks the draft model: keeps its context equal to the committed text, over one session.

Whatever goes wrong with a draft ends here: there is no guess, and the round loop goes on. No grpc.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from orchestrator.conversion.conversion import Proposal, ProposalStatus
from orchestrator.draft_context import ContextUpdate, DraftContext
from orchestrator.drafter import Failure
from orchestrator.events import Degraded
from orchestrator.observation import Observation
from orchestrator.running_draft import RunningDraft
from orchestrator.sessions import DraftCommand, Drafted, DraftPort, ExchangeTime
from orchestrator.speculation.figures import DraftedTokens
from uag_common.abandon import abandon
from uag_common.errors import StaleContextError, UagError
from uag_common.limits import MAX_DRAFT_TOKENS

log = logging.getLogger(__name__)

MAX_REOPENS = 3
"""A draft that keeps losing its context is given up: each new session costs it a prefill."""

LONG_READ = 64
"""Tokens: more than a round commits. What is longer is read beside the rounds, as a prompt is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much is wanted of the draft: at most so many of its tokens, and of candidates that there
    is room for. `min_probability` as in the contract; None leaves it to the service."""

    tokens: int
    room: int
    min_probability: float | None = None


@dataclass(frozen=True, slots=True)
class ModelGuess:
    """Candidates, the draft's probability of each, and what they cost: None while more come. Of a
    draft that runs ahead and began anew, `begun_seconds` went by until they were there."""

    ids: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    seen: DraftedTokens | None = None
    begun_seconds: float | None = None


NOTHING = ModelGuess()


class ModelDrafter:
    """Of one answer. `wait`: rounds wait for a draft that is not ready yet."""

    def __init__(
        self,
        context: DraftContext,
        open_session: Callable[[], DraftPort],
        observation: Observation,
        *,
        wait: bool,
    ) -> None:
        self._context = context
        self._open_session = open_session
        self._observation = observation
        self._wait = wait
        self._reopens = 0
        self._round = 0
        self._session: DraftPort | None = None
        self._reading: asyncio.Task[Drafted] | None = None
        self._running: RunningDraft | None = None
        self._left: list[RunningDraft] = []
        self._converted: _Converted | None = None
        self._failure: Failure | None = None

    @property
    def degraded(self) -> Degraded | None:
        """Set once drafting has stopped."""
        return None if self._failure is None else self._failure.until_now()

    @property
    def ready(self) -> bool:
        """Whether it can be asked now without a wait for what it has to read."""
        reading = self._reading
        return self._session is not None and (reading is None or reading.done())

    def start(self) -> None:
        """Begins to open a session, without waiting for it."""
        update = self._sync(1)
        # A draft that cannot spell the prompt may yet be able to spell what follows it.
        if self._context.ids and self._has_room(update):
            self._open()

    def commit(self, ids: Sequence[int]) -> None:
        """The target committed these."""
        self._converted = None
        self._account()
        if self._failure is None:
            # Too little to be shown.
            with self._observation.tally.converting():
                self._context.commit(ids)

    def close(self) -> None:
        """Ends the session."""
        reading, self._reading = self._reading, None
        if reading is not None:
            abandon(reading)
        if self._session is not None:
            self._session.close()
        self._leave()
        self._account()
        self._session = None

    async def draft(self, round_number: int, wanted: Wanted) -> ModelGuess:
        """Drafts, and waits for it. Never raises."""
        self._round = round_number
        session = await self._ready_session() if wanted.room > 0 else None
        if session is None:
            return NOTHING
        began = time.perf_counter()
        update = self._sync(min(wanted.tokens, wanted.room))
        if not self._has_room(update):
            return NOTHING
        self._leave()
        if len(update.append) > LONG_READ and not self._wait:
            # No less than a token can be asked for; the next command takes it back.
            command = self._command(replace(update, room=1), None)
            self._reading = asyncio.ensure_future(session.propose(command))
            return NOTHING
        command = self._command(update, wanted.min_probability)
        drafted = await self._outcome(session.propose(command))
        return NOTHING if drafted is None else self._take(drafted, command, wanted, began)

    async def draft_on(self, round_number: int, least: int, room: int) -> ModelGuess:
        """What the draft has ready, as soon as that are `least` candidates or all that will come.
        It goes on drafting until it was wrong. Never raises."""
        self._round = round_number
        guess, began = NOTHING, None
        if self._running is not None:
            guess = self._goes_on(self._running, room)
        if self._running is None and await self._ready_session() is not None:
            began = time.perf_counter()
            self._begin(least, room)
        while (running := self._running) is not None and len(guess.ids) < min(least, room):
            if running.ended:
                break
            await running.more()
            guess = self._goes_on(running, room)
        if began is None or len(guess.ids) < max(1, least):
            return guess
        return replace(guess, begun_seconds=time.perf_counter() - began)

    def pause(self) -> None:
        """Lets the draft stop what it drafts ahead."""
        if self._running is not None and self._session is not None:
            self._goes_on(self._running, 0)
            if self._running is not None and not self._running.ended:
                self._session.run(self._command(replace(self._sync(1), room=0), None))
            self._leave()

    @property
    def runs(self) -> bool:
        """Whether the draft is drafting now."""
        return self._running is not None and not self._running.ended

    def in_hand(self, room: int) -> int:
        """Candidates that are ready."""
        running = self._running
        return 0 if running is None else len(self._goes_on(running, room).ids)

    def _begin(self, least: int, room: int) -> None:
        update = self._sync(min(MAX_DRAFT_TOKENS, 2 * room + 2))
        if self._session is not None and self._has_room(update):
            command = replace(self._command(update, 0.0), first_tokens=min(least, room))
            self._running, self._converted = self._session.run(command), None

    def _goes_on(self, running: RunningDraft, room: int) -> ModelGuess:
        """Candidates of what has come until now; the draft starts anew if they are not wanted."""
        proposal = self._proposal(running)
        if running.error is not None:
            self._failed(running.error)
            return NOTHING
        wrong = proposal.status is ProposalStatus.HELD_MISMATCH or not self._context.may_go_on
        if wrong or (running.ended and not proposal.candidate_ids):
            self._observation.unconverted(
                proposal.lost_draft_ids, proposal.not_representable_draft_ids
            )
            self._leave()
            return NOTHING
        return ModelGuess(
            proposal.candidate_ids[:room], _probabilities(proposal, running.probabilities)[:room]
        )

    def _proposal(self, running: RunningDraft) -> Proposal:
        """Of what has come until now; it is asked for more often than something comes."""
        count, converted = len(running.ids), self._converted
        if converted is None or converted.draft_tokens != count:
            converted = self._converted = _Converted(count, self._convert(running.ids))
        return converted.proposal

    def _leave(self) -> None:
        """Nothing more is wanted of the running draft, and the next command ends it."""
        if self._running is not None:
            self._left.append(self._running)
            self._running = None

    def _account(self) -> None:
        """Counts what was left and has ended since."""
        for draft in self._left:
            if draft.time is not None:
                self._observation.drafted(len(draft.ids), ExchangeTime(0.0, draft.time))
        self._left = [draft for draft in self._left if not draft.ended]

    def _sync(self, tokens: int) -> ContextUpdate:
        with self._observation.converting():
            return self._context.sync(tokens)

    def _convert(self, ids: Sequence[int]) -> Proposal:
        with self._observation.converting():
            return self._context.propose(ids)

    def _has_room(self, update: ContextUpdate) -> bool:
        if not update.room:
            self._give_up(self._context.problem)
        return update.room > 0

    def _open(self) -> None:
        """Opens a session with the whole context; rounds are plain steps until it is ready."""
        self._leave()
        self._session = self._open_session()
        ids, answer_start = tuple(self._context.ids), self._context.answer_start
        self._reading = asyncio.ensure_future(_opened(self._session, ids, answer_start))

    def _command(self, update: ContextUpdate, min_probability: float | None) -> DraftCommand:
        command = DraftCommand(
            round=self._round,
            keep=update.kept.length,
            kept=update.kept,
            append_ids=update.append,
            max_tokens=update.room,
            position=self._context.position,
            min_probability=min_probability,
        )
        self._observation.commanded(command, update.rollback)
        return command

    async def _ready_session(self) -> DraftPort | None:
        """The session, once it has read what it was last given to read, and while it lives."""
        if self._session is None and self._failure is None:
            self.start()
        if self._reading is not None:
            if not (self._wait or self._reading.done()):
                return None
            if await self._outcome(self._read(self._reading)) is None:
                return None
            self._reading = None
        return self._session

    async def _read(self, reading: asyncio.Task[Drafted]) -> Drafted:
        if reading.done():
            return reading.result()
        with self._observation.waiting_for_draft():
            return await reading

    async def _outcome(self, exchange: Awaitable[Drafted]) -> Drafted | None:
        """What the draft answers; None if it has lost the context, or is lost itself."""
        try:
            return await exchange
        except UagError as error:
            self._failed(error)
        return None

    def _failed(self, error: UagError) -> None:
        if isinstance(error, StaleContextError):
            self._reopen(str(error))
        else:
            self._give_up(str(error))

    def _take(
        self, drafted: Drafted, command: DraftCommand, wanted: Wanted, began: float
    ) -> ModelGuess:
        self._observation.drafted(len(drafted.ids), drafted.time)
        proposal = self._convert(drafted.ids)
        self._observation.unconverted(proposal.lost_draft_ids, proposal.not_representable_draft_ids)
        step = drafted.time.step
        seen = DraftedTokens(
            seconds=time.perf_counter() - began,
            forward_seconds=step.forward_seconds,
            passes=step.passes,
            asked=command.max_tokens,
            drafted=len(drafted.ids),
            candidates=len(proposal.candidate_ids),
            lost=proposal.lost_draft_ids,
        )
        ids = proposal.candidate_ids[: wanted.room]
        return ModelGuess(ids, _probabilities(proposal, drafted.probabilities)[: len(ids)], seen)

    def _reopen(self, reason: str) -> None:
        if self._session is not None:
            self._session.close()
        self._reopens += 1
        self._observation.reopened()
        if self._reopens > MAX_REOPENS:
            self._give_up(reason)
            return
        self._open()

    def _give_up(self, reason: str) -> None:
        log.warning("drafting stopped in round %d: %s", self._round, reason)
        self._failure = Failure.now(reason, self._round)
        self.close()


@dataclass(frozen=True, slots=True)
class _Converted:
    """So many of the running draft's tokens, as candidates after what is committed now."""

    draft_tokens: int
    proposal: Proposal


async def _opened(session: DraftPort, ids: tuple[int, ...], answer_start: int) -> Drafted:
    return Drafted((), await session.open(ids, answer_start))


def _probabilities(proposal: Proposal, of_tokens: Sequence[float]) -> tuple[float, ...]:
    """Of each candidate: that of the draft tokens which it adds to the text, together."""
    told, before = list[float](), proposal.known_draft_ids
    for used in proposal.draft_ids_used:
        told.append(math.prod(of_tokens[before:used]))
        before = max(before, used)
    return tuple(told)
