"""Where candidates come from: the draft model over its session, or nowhere.

Whatever goes wrong with a draft ends here: the round loop gets no candidates and goes on. No grpc.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from orchestrator.draft_context import ContextUpdate, DraftContext
from orchestrator.events import Degraded
from orchestrator.observation import Observation
from orchestrator.sessions import DraftCommand, Drafted, DraftPort
from uag_common.errors import StaleContextError, UagError

log = logging.getLogger(__name__)

MAX_REOPENS = 3
"""A draft that keeps losing its context is given up: each new session costs it a prefill."""

LONG_READ = 64
"""Tokens: more than a round commits. What is longer is read beside the rounds, as a prompt is."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why and when drafting stopped; `at` is by the clock of `time.perf_counter`."""

    reason: str
    round: int
    at: float

    def until_now(self) -> Degraded:
        return Degraded(self.reason, self.round, time.perf_counter() - self.at)


class Drafter(Protocol):
    """Guesses what the target says next."""

    @property
    def degraded(self) -> Degraded | None:
        """Set once drafting was wanted and has stopped."""

    def start(self) -> None:
        """Begins to prepare, without waiting for it."""

    async def propose(self, round_number: int, room: int) -> tuple[int, ...]:
        """At most `room` candidates, target ids; none if there is nothing to say. Never raises."""

    def commit(self, ids: Sequence[int]) -> None:
        """The target committed these."""

    def close(self) -> None:
        """Frees what is held."""


class NoDrafter:
    """Never drafts: each round is a plain step. `reason` tells why, where drafting was wanted."""

    def __init__(self, reason: str | None = None) -> None:
        self._failure = None if reason is None else _Failure(reason, 0, time.perf_counter())

    @property
    def degraded(self) -> Degraded | None:
        return None if self._failure is None else self._failure.until_now()

    def start(self) -> None: ...

    async def propose(self, round_number: int, room: int) -> tuple[int, ...]:  # noqa: ARG002
        return ()

    def commit(self, ids: Sequence[int]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """How to draft for one answer: tokens a round, and whether rounds wait for a draft that is not
    ready yet."""

    tokens: int
    wait: bool


class ModelDrafter:
    """Keeps the draft's context equal to the committed text, and asks it for what follows."""

    def __init__(
        self,
        plan: DraftPlan,
        context: DraftContext,
        open_session: Callable[[], DraftPort],
        observation: Observation,
    ) -> None:
        self._plan = plan
        self._context = context
        self._open_session = open_session
        self._observation = observation
        self._reopens = 0
        self._round = 0
        self._session: DraftPort | None = None
        self._reading: asyncio.Task[Drafted] | None = None
        self._failure: _Failure | None = None

    @property
    def degraded(self) -> Degraded | None:
        return None if self._failure is None else self._failure.until_now()

    def start(self) -> None:
        update = self._sync(self._plan.tokens)
        # A draft that cannot spell the prompt may yet be able to spell what follows it.
        if self._context.ids and self._has_room(update):
            self._open()

    def _sync(self, tokens: int) -> ContextUpdate:
        with self._observation.converting():
            return self._context.sync(tokens)

    def _has_room(self, update: ContextUpdate) -> bool:
        if not update.room:
            self._give_up(self._context.problem)
        return update.room > 0

    def _open(self) -> None:
        """Opens a session with the whole context; rounds are plain steps until it is ready."""
        self._session = self._open_session()
        ids, answer_start = tuple(self._context.ids), self._context.answer_start
        self._reading = asyncio.ensure_future(_opened(self._session, ids, answer_start))

    async def propose(self, round_number: int, room: int) -> tuple[int, ...]:
        self._round = round_number
        session = await self._ready_session() if room > 0 else None
        if session is None:
            return ()
        update = self._sync(min(self._plan.tokens, room))
        if not self._has_room(update):
            return ()
        if len(update.append) > LONG_READ and not self._plan.wait:
            # No less than a token can be asked for; the next command takes it back.
            command = self._command(replace(update, room=1))
            self._reading = asyncio.ensure_future(session.propose(command))
            return ()
        drafted = await self._outcome(session.propose(self._command(update)))
        return () if drafted is None else self._take(drafted)[:room]

    def _command(self, update: ContextUpdate) -> DraftCommand:
        command = DraftCommand(
            round=self._round,
            keep=update.kept.length,
            kept=update.kept,
            append_ids=update.append,
            max_tokens=update.room,
            position=self._context.position,
        )
        self._observation.commanded(command, update.rollback)
        return command

    async def _ready_session(self) -> DraftPort | None:
        """The session, once it has read what it was last given to read, and while it lives."""
        if self._session is None and self._failure is None:
            self.start()
        if self._reading is not None:
            if not (self._plan.wait or self._reading.done()):
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
        except StaleContextError as error:
            self._reopen(str(error))
        except UagError as error:
            self._give_up(str(error))
        return None

    def _take(self, drafted: Drafted) -> tuple[int, ...]:
        self._observation.drafted(len(drafted.ids), drafted.time)
        with self._observation.converting():
            proposal = self._context.propose(drafted.ids)
        self._observation.unconverted(proposal.lost_draft_ids, proposal.not_representable_draft_ids)
        return proposal.candidate_ids

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
        self._failure = _Failure(reason, self._round, time.perf_counter())
        self.close()

    def commit(self, ids: Sequence[int]) -> None:
        if self._failure is None:
            # Too little to be shown.
            with self._observation.tally.converting():
                self._context.commit(ids)

    def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None and not reading.cancel() and not reading.cancelled():
            # Asked for, so that a failure which came too late to matter is not reported as lost.
            reading.exception()
        if self._session is not None:
            self._session.close()
        self._session = None


async def _opened(session: DraftPort, ids: tuple[int, ...], answer_start: int) -> Drafted:
    return Drafted((), await session.open(ids, answer_start))
