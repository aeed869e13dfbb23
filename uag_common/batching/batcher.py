"""Runs the steps of all sessions on the model's thread, as many as there are in each forward pass.

Each step is a generator that yields what it needs of the model. In each round of `_turn` those that
are new start, a plan is made of what all of them want, one pass runs, and each is sent its logits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeVar

from uag_common.batching.job import Job, Opening, Tenant
from uag_common.batching.pace import Pace
from uag_common.batching.plan import PassLimits, plan
from uag_common.batching.queue_bound import OpeningQueue, QueueBound
from uag_common.batching.returns import Returns
from uag_common.batching.room import Room, Tenants
from uag_common.batching.timing import StepObserver, StepTime, Timed, UnseenSteps
from uag_common.model import Logits, Model, Part, Step
from uag_common.worker import Worker

T = TypeVar("T")

log = logging.getLogger(__name__)

MOST_SESSIONS = 256
MOST_TOKENS = 1024
"""Of all parts of a pass together."""
ACTIVE_SECONDS = 1.0
"""A session that had a pass so lately will want the next one."""
RETRY_SECONDS = 0.02
"""Between two looks where all that waits waits for memory."""


class BatchSession:
    """A session's access to the model's thread; to be ended in any case."""

    def __init__(self, batcher: Batcher, tenant: Tenant) -> None:
        self._batcher = batcher
        self._tenant = tenant

    async def run(
        self, step: Callable[[], Step[T]], command: str, opening: Opening | None = None
    ) -> Timed[T]:
        """Runs a step and gives what it gave, or raises what it raised. `command` is what the step
        belongs to; `opening`: it is the session's first one. Raises OverloadedError for that if too
        many wait. If the caller goes away, the step ends before its next pass."""
        return await self._batcher.run(self._tenant, step, command, opening)

    def end(self, last: Callable[[], None]) -> None:
        """Runs `last` on the model's thread, before all that waits there: it frees the session's
        memory."""
        self._batcher.end(self._tenant, last)


class Batcher:
    """The queue of one model's work."""

    def __init__(
        self,
        worker: Worker,
        model: Model,
        reclaim: Callable[[], bool],
        observer: StepObserver | None = None,
        bound: QueueBound | None = None,
        max_batch: int = MOST_SESSIONS,
    ) -> None:
        """`reclaim` frees a cache that no session uses, if there is one; called on the model's
        thread. `max_batch`: sessions that may share a pass."""
        self._worker = worker
        self._model = model
        self._max_batch = min(max_batch, model.most_parts)
        self._observer = observer or UnseenSteps()
        self._room = Room(model.blocks, reclaim, self._observer.evicted)
        self._queue = OpeningQueue(bound or QueueBound())
        self._pace = Pace()
        self._returns = Returns()
        self._numbers = count()
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._tenants: list[Tenant] = []
        self._ending = 0
        self._running = False

    @property
    def waiting(self) -> int:
        """Sessions that wait to be opened."""
        with self._changed:
            return self._unopened()

    @property
    def pending(self) -> int:
        """Steps that wait or run, and ends of sessions that wait."""
        with self._changed:
            return len(self._jobs) + self._ending

    @property
    def step_seconds(self) -> float:
        """How long the running pass has been running; 0 if none runs."""
        return self._worker.step_seconds

    def session(self, priority: float = 0.0) -> BatchSession:
        """A new one. With priority p, its steps are as if they had come p seconds earlier: waiting
        makes up for a lower priority, so none waits for ever."""
        return BatchSession(self, Tenant(next(self._numbers), priority))

    async def run(
        self, tenant: Tenant, step: Callable[[], Step[T]], command: str, opening: Opening | None
    ) -> Timed[T]:
        """As `BatchSession.run`."""
        job = Job(tenant, step, opening)
        self._submit(job)
        try:
            value = await asyncio.wrap_future(job.future)
            return Timed(value, StepTime.of(job.passes))
        except asyncio.CancelledError:
            if not job.passes:
                self._observer.dropped(command, job.queued)
            raise
        finally:
            self._forget(job)
            if job.passes:
                self._observer.stepped(command, tuple(job.passes))
            # Its error knows this frame, and both would live on.
            del job

    def end(self, tenant: Tenant, last: Callable[[], None]) -> None:
        """As `BatchSession.end`."""

        def leave() -> None:
            with self._changed:
                if tenant in self._tenants:
                    self._tenants.remove(tenant)
                tenant.ended = True
                self._returns.gone(tenant.number)
            try:
                last()
            finally:
                with self._changed:
                    self._ending -= 1
                    self._changed.notify()

        with self._changed:
            self._ending += 1
        self._worker.post(leave)

    def _submit(self, job: Job) -> None:
        with self._changed:
            if job.opening is not None:
                self._queue.check(self._unopened())
            self._jobs.append(job)
            self._returns.back(job.tenant.number, job.queued)
            self._changed.notify()
            if not self._running:
                self._running = True
                self._worker.post(self._turn, urgent=False)

    def _unopened(self) -> int:
        return sum(job.opening is not None and not job.started for job in self._jobs)

    def _forget(self, job: Job) -> None:
        """A step whose caller is gone must not hold its prompt until its turn comes."""
        with self._changed:
            if not job.future.done():
                job.future.cancel()
            if job in self._jobs and not job.started:
                self._jobs.remove(job)

    def _turn(self) -> None:
        """One pass after another as long as there is work; in between the worker does what else
        waits for it."""
        while self._one_pass():
            if self._worker.waiting:
                self._worker.post(self._turn, urgent=False)
                return
            self._worker.next_step()

    def _one_pass(self) -> bool:
        """Whether there is more to do."""
        began = self._gather()
        ran, over = False, list[Job]()
        try:
            over += self._sweep()
            self._start(began)
            ran = self._pass(self._alone() or self._plan(began))
            while ran and (alone := self._alone()):
                self._worker.next_step()
                self._pass(alone)
        except Exception as error:
            # A bug: nobody must wait for ever.
            log.error("unexpected failure of a pass", exc_info=error)
            self._fail(error)
        over += self._sweep()
        with self._changed:
            running = self._running = bool(self._jobs)
            if running and not ran:
                self._changed.wait(RETRY_SECONDS)
        # Last of all: whoever is told wants the interpreter for itself.
        for job in over:
            job.deliver()
        return running

    def _fail(self, error: Exception) -> None:
        with self._changed:
            jobs = tuple(self._jobs)
        for job in jobs:
            job.fail(error)

    def _gather(self) -> float:
        """Waits for those who come back in a moment; gives the time."""
        with self._changed:
            while True:
                now = time.perf_counter()
                until = self._returns.wait_until(now, self._pace.pass_seconds, len(self._jobs))
                if until <= now:
                    return now
                self._changed.wait(until - now)

    def _sweep(self) -> Sequence[Job]:
        """Takes out what is over, to be delivered."""
        with self._changed:
            over = [job for job in self._jobs if job.over]
            self._jobs = [job for job in self._jobs if not job.over]
        now = time.perf_counter()
        for job in over:
            job.close()
            # The end of a session goes before the turn that takes out its last step.
            if not job.tenant.ended:
                self._returns.left(job.tenant.number, now)
        return over

    def _start(self, now: float) -> None:
        """Those that have not begun; sessions are opened as far as there is room for them, the most
        urgent first."""
        with self._changed:
            new = sorted((job for job in self._jobs if not job.started), key=lambda job: job.due)
        for job in new:
            if job.opening is None:
                job.start()
        promised = self._promised()
        for job in new:
            if job.opening is None or not self._may_wait(job, now) or not job.opening.ready():
                continue
            promised += self._blocks_of(job.opening)
            # The first one that does not fit keeps those behind it waiting: it came earlier.
            if not self._room.spare(min(promised, self._model.blocks.total)):
                break
            self._open(job, now)

    def _may_wait(self, job: Job, now: float) -> bool:
        """Whether it may wait on; else it is told so."""
        late = self._queue.overdue(job.queued, now)
        if late is not None:
            job.fail(late)
        return late is None

    def _open(self, job: Job, now: float) -> None:
        with self._changed:
            self._tenants.append(job.tenant)
        job.start()
        with self._changed:
            self._queue.opened(now, self._unopened())

    def _blocks_of(self, opening: Opening) -> int:
        """With room for the first tokens of its answer."""
        return opening.tokens // self._model.blocks.block_tokens + 2

    def _promised(self) -> int:
        """Blocks that those who run will take before long."""
        with self._changed:
            running = [job for job in self._jobs if job.wanted is not None]
            return len(self._tenants) + sum(
                job.wanted.sequence.blocks_for(job.pending)
                for job in running
                if job.wanted is not None
            )

    def _plan(self, now: float) -> list[tuple[Job, Part]]:
        """What runs in this pass. Those for whom there is no memory now make place for others."""
        with self._changed:
            jobs = [job for job in self._jobs if job.wanted is not None and not job.over]
        limits = PassLimits(
            parts=self._max_batch,
            tokens=MOST_TOKENS,
            prompt_tokens=self._pace.prompt_tokens(shared=self._is_shared(jobs, now)),
        )
        parts: list[tuple[Job, Part]] = []
        while jobs and not parts:
            tokens = plan([job.want() for job in jobs], limits)
            chosen = [(job, count) for job, count in zip(jobs, tokens, strict=True) if count]
            parts = list(self._with_room(chosen, now))
            jobs = [job for job, count in zip(jobs, tokens, strict=True) if not count]
        return parts

    def _is_shared(self, jobs: Sequence[Job], now: float) -> bool:
        """Whether others than one prompt alone wait for the next pass, or will in a moment."""
        with self._changed:
            active = sum(now - tenant.used < ACTIVE_SECONDS for tenant in self._tenants)
        return max(active, len(jobs)) > 1

    def _alone(self) -> list[tuple[Job, Part]]:
        """The next pass, if one session is all there is and its step goes on: there is nothing to
        plan, and a small draft's tokens come faster than plans are made."""
        with self._changed:
            if len(self._tenants) != 1 or len(self._jobs) != 1 or self._worker.waiting:
                return []
            (job,) = self._jobs
        wanted = job.want()
        if job.wanted is None or job.over or not wanted.short:
            return []
        sequence, tokens = job.wanted.sequence, wanted.pending
        if sequence.blocks_for(tokens) > self._model.blocks.free:
            return []
        return [(job, Part(sequence, tokens, job.wanted.rows))]

    def _with_room(
        self, chosen: Iterable[tuple[Job, int]], now: float
    ) -> Iterator[tuple[Job, Part]]:
        """Those that there is memory for; the oldest session is the first to have it."""
        taken = 0
        with self._changed:
            busy = {job.tenant for job in self._jobs}
            tenants = Tenants(tuple(self._tenants), busy, now)
        for job, tokens in sorted(chosen, key=lambda pair: pair[0].tenant.number):
            if job.wanted is None:
                continue
            sequence = job.wanted.sequence
            # A cache that was given up for an older session must be run again from its start.
            tokens = min(tokens, job.pending)
            needed = sequence.blocks_for(tokens)
            if self._room.free(taken + needed, job.tenant, tenants):
                taken += needed
                yield job, Part(sequence, tokens, job.wanted.rows)

    def _pass(self, parts: Sequence[tuple[Job, Part]]) -> bool:
        if not parts:
            return False
        began = time.perf_counter()
        tokens = sum(part.tokens for _, part in parts)
        prompts = sum(part.tokens for job, part in parts if not job.want().short)
        for (job, _), done in zip(parts, self._run([part for _, part in parts]), strict=True):
            job.had(began, len(parts), tokens)
            if isinstance(done, Exception):
                job.fail(done)
            elif done.rows:
                job.send(done)
        seconds = time.perf_counter() - began
        self._pace.observe(prompts, seconds)
        self._observer.passed(len(parts), tokens, seconds)
        return True

    def _run(self, parts: Sequence[Part]) -> Sequence[Logits | Exception]:
        """One pass. If it fails, each part has one of its own, so that only those fail whose fault
        it is."""
        try:
            return self._model.run(parts)
        except Exception as error:
            if len(parts) == 1:
                return [error]
            return [result for part in parts for result in self._run([part])]
