"""Where candidates come from: the draft model over its session, or nowhere.

Whatever goes wrong with a draft ends here: the round loop gets no candidates and goes on. No grpc.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.conversion.conversion import Conversion
from orchestrator.events import Degraded
from orchestrator.observation import Observation
from orchestrator.sessions import DraftCommand, DraftPort, ExchangeTime
from uag_common.context import ContextVersion
from uag_common.errors import StaleContextError, UagError

log = logging.getLogger(__name__)

MAX_REOPENS = 3
"""A draft that keeps losing its context is given up: each new session costs it a prefill."""


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
    """How to draft for one answer: tokens a round, how many the draft's context holds, and whether
    rounds wait for a draft that is not ready yet."""

    tokens: int
    context_length: int
    wait: bool


class ModelDrafter:
    """Keeps the draft's context equal to the committed text, and asks it for what follows."""

    def __init__(
        self,
        plan: DraftPlan,
        conversion: Conversion,
        open_session: Callable[[], DraftPort],
        observation: Observation,
    ) -> None:
        self._plan = plan
        self._conversion = conversion
        self._open_session = open_session
        self._observation = observation
        self._reopens = 0
        self._round = 0
        self._session: DraftPort | None = None
        self._opening: asyncio.Task[ExchangeTime] | None = None
        self._failure: _Failure | None = None
        # The first sync is done: what the draft has now is the prompt.
        self._answer_start = len(conversion.draft_ids)

    @property
    def degraded(self) -> Degraded | None:
        return None if self._failure is None else self._failure.until_now()

    def start(self) -> None:
        self._sync(room=0)
        if self._fits():
            self._open()

    def _sync(self, room: int) -> DraftCommand:
        """Brings the mirror up to the committed text; what the draft must be told of it, and to
        draft no more than there is room for."""
        with self._observation.converting():
            update = self._conversion.sync()
            kept = ContextVersion.of(self._conversion.draft_ids, update.keep)
        tokens = min(self._plan.tokens, room)
        position = self._conversion.position
        command = DraftCommand(self._round, update.keep, kept, update.append, tokens, position)
        self._observation.commanded(command, update.rollback)
        return command

    def _fits(self) -> bool:
        length, limit = len(self._conversion.draft_ids), self._plan.context_length
        if not length:
            self._give_up("the draft's tokenizer cannot spell the prompt")
        elif length >= limit:
            self._give_up(f"the draft's context of {limit} tokens is full")
        return 0 < length < limit

    def _open(self) -> None:
        """Opens a session with the whole context; rounds are plain steps until it is ready."""
        self._session = self._open_session()
        ids = tuple(self._conversion.draft_ids)
        self._opening = asyncio.ensure_future(
            self._session.open(ids, min(self._answer_start, len(ids)))
        )

    async def propose(self, round_number: int, room: int) -> tuple[int, ...]:
        self._round = round_number
        session = await self._ready_session() if room > 0 else None
        if session is None:
            return ()
        command = self._sync(room)
        if not self._fits():
            return ()
        try:
            drafted = await session.propose(command)
        except StaleContextError as error:
            self._reopen(str(error))
            return ()
        except UagError as error:
            self._give_up(str(error))
            return ()
        self._observation.drafted(len(drafted.ids), drafted.time)
        return self._convert(drafted.ids)[:room]

    async def _ready_session(self) -> DraftPort | None:
        """The session, once it is open and while it lives."""
        if self._session is None or self._opening is None:
            return None
        if not (self._plan.wait or self._opening.done()):
            return None
        try:
            await self._opened(self._opening)
        except UagError as error:
            self._give_up(str(error))
            return None
        return self._session

    async def _opened(self, opening: asyncio.Task[ExchangeTime]) -> None:
        if opening.done():
            opening.result()
            return
        with self._observation.waiting_for_draft():
            await opening

    def _convert(self, draft_ids: tuple[int, ...]) -> tuple[int, ...]:
        with self._observation.converting():
            proposal = self._conversion.propose(draft_ids)
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
                self._conversion.commit(ids)

    def close(self) -> None:
        if (
            self._opening is not None
            and not self._opening.cancel()
            and not self._opening.cancelled()
        ):
            # Asked for, so that a failure which came too late to matter is not reported as lost.
            self._opening.exception()
        if self._session is not None:
            self._session.close()
        self._session = None
