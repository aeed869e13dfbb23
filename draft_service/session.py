"""One draft session: what of its commands may run, and where. No grpc, no torch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from draft_service.commands import OpenCommand, ProposeCommand
from draft_service.drafter import CausalDrafter, ProposalEnd
from draft_service.drafting import Drafting, DraftToken
from uag_common.batching.batcher import Batcher, BatchSession
from uag_common.batching.job import Opening
from uag_common.batching.timing import StepTime, Timed
from uag_common.errors import InvalidRequestError
from uag_common.model import Model, Step
from uag_common.prefix_cache import PrefixCache
from uag_common.telemetry.attributes import ROLLED_BACK
from uag_common.telemetry.names import ROLLBACK
from uag_common.telemetry.spans import past_span


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was drafted and not told before, why it ended, what it took, and how many tokens were
    rolled back before."""

    tokens: tuple[DraftToken, ...]
    end: ProposalEnd
    time: StepTime
    rolled_back: int


class DraftSession:
    """Lives as long as its stream; to be closed in any case."""

    def __init__(self, model: Model, batcher: Batcher, prefixes: PrefixCache) -> None:
        self._model = model
        self._batcher = batcher
        self._prefixes = prefixes
        self._drafter: CausalDrafter | None = None
        self._work: BatchSession | None = None

    @property
    def context_length(self) -> int:
        """Tokens that it holds."""
        return 0 if self._drafter is None else self._drafter.context_length

    async def open(self, command: OpenCommand) -> Timed[int]:
        """How many tokens of the context were found in a cache. Raises InvalidRequestError or
        PromptTooLongError before any model runs."""
        if self._drafter is not None:
            raise InvalidRequestError("open", "the session is open already")
        command.check(self._model.description)
        self._drafter = CausalDrafter(self._model, self._prefixes, command)
        self._work = self._batcher.session(command.priority)
        first = Opening(len(command.context_ids), self._drafter.is_ready)
        return await self._work.run(self._drafter.open, "open", first)

    async def propose(
        self, command: ProposeCommand, superseded: Callable[[], bool] = lambda: False
    ) -> Proposal:
        """It ends before its next token once it is `superseded`, which is asked on the model's
        thread. Raises InvalidRequestError, PromptTooLongError or StaleContextError before any model
        runs."""
        return await self._draft(command, Drafting(superseded))

    async def stream(
        self, command: ProposeCommand, superseded: Callable[[], bool]
    ) -> AsyncGenerator[tuple[DraftToken, ...] | Proposal, None]:
        """As `propose`, but tokens as they come, then the proposal with the rest of them."""
        tokens = Drafting(superseded, asyncio.get_running_loop(), command.first_tokens)
        running = asyncio.ensure_future(self._draft(command, tokens))
        running.add_done_callback(tokens.wake)
        try:
            while True:
                await tokens.changed()
                if running.done():
                    yield running.result()
                    return
                if some := tokens.new():
                    yield some
        finally:
            running.cancel()

    async def _draft(self, command: ProposeCommand, tokens: Drafting) -> Proposal:
        drafter, work = self._drafter, self._work
        if drafter is None or work is None:
            raise InvalidRequestError("propose", "the session must be opened first")
        drafter.check_propose(command)
        rollback = _Rollback()

        def step() -> Step[ProposalEnd]:
            with rollback.timed():
                rollback.tokens = drafter.begin(command)
            return (yield from drafter.draft(command, tokens))

        done = await work.run(step, "propose")
        rollback.show()
        return Proposal(tokens.new(), done.value, done.time, rollback.tokens)

    def close(self) -> None:
        """Ends the session on the model's thread, after the step that runs there; does not wait."""
        if self._drafter is not None and self._work is not None:
            self._work.end(self._drafter.end)


class _Rollback:
    """How the context went back to what is kept: by how many tokens, and when."""

    def __init__(self) -> None:
        self.tokens = 0
        self._began = self._ended = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        self._began = time.perf_counter()
        yield
        self._ended = time.perf_counter()

    def show(self) -> None:
        if self.tokens:
            past_span(ROLLBACK, self._began, self._ended, {ROLLED_BACK: self.tokens})
