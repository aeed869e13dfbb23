"""Answers requests with the pair of models that is there: from the checked request to the events of
all its answers. The loop of each answer stands in `round_loop`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from orchestrator.answer_end import AnswerEnd
from orchestrator.answer_metrics import AnswerMetrics
from orchestrator.answer_plan import AnswerPlan
from orchestrator.choices import merged
from orchestrator.events import Delta, Event, Prefilled, Started
from orchestrator.pair import Pair
from orchestrator.preparation import Preparation
from orchestrator.request import AnswerRequest
from orchestrator.request_check import check_request
from orchestrator.request_log import RequestLog
from orchestrator.request_record import RequestRecord
from orchestrator.resolving import (
    Defaults,
    check_answers,
    check_prompt_length,
    identified,
    resolve,
)
from uag_common.telemetry.names import PREPARE
from uag_common.telemetry.spans import inner_span


class Answering:
    """Holds the answers that are being written."""

    def __init__(
        self,
        pair: Pair,
        preparation: Preparation,
        defaults: Defaults,
        metrics: AnswerMetrics,
        log: RequestLog,
    ) -> None:
        self._pair = pair
        self._preparation = preparation
        self._defaults = defaults
        self._metrics = metrics
        self._log = log
        self._ends: set[AnswerEnd] = set()

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[Event, None]:
        """`Started`, any number of deltas, `Finished` for each answer. Raises InvalidRequestError,
        PromptTooLongError or OverloadedError before any model runs, PeerUnavailableError if there
        is no target."""
        began = time.perf_counter()
        request = identified(request)
        record = RequestRecord(request, self._metrics, self._log, began)
        with record.kept():
            check_request(request)
            record.checked()
            async with aclosing(self._answer(request, record)) as events:
                async for event in events:
                    yield event

    async def _answer(
        self, request: AnswerRequest, record: RequestRecord
    ) -> AsyncGenerator[Event, None]:
        with self._ending(request.stopping.time_limit_seconds) as end:
            with inner_span(PREPARE):
                plan = await self._plan(request, record, end)
            async with aclosing(_events(plan, record)) as events:
                async for event in events:
                    if isinstance(event, Delta):
                        record.said(event.text)
                    yield event

    async def _plan(
        self, request: AnswerRequest, record: RequestRecord, end: AnswerEnd
    ) -> AnswerPlan:
        target = self._pair.target
        resolved = resolve(request, self._defaults, target.description)
        check_answers(resolved.n, self._pair.max_answers)
        prompt = await self._preparation.encode(
            target, request.prompt, request.truncate_prompt_tokens
        )
        check_prompt_length(len(prompt.ids), target.description)
        if request.constraint is not None:
            await self._preparation.check(request.constraint)
        observations = [record.observe(choice) for choice in range(resolved.n)]
        plan = AnswerPlan(
            self._pair, resolved, target, prompt, self._preparation, observations, end
        )
        record.resolved(resolved, plan.target_model_id, plan.draft_model_id, len(prompt.ids))
        await plan.prepare()
        return plan

    def cancel_all(self) -> None:
        """Ends all answers where they stand."""
        for end in self._ends:
            end.cancel()

    @contextmanager
    def _ending(self, time_limit_seconds: float | None) -> Iterator[AnswerEnd]:
        end = AnswerEnd(time_limit_seconds)
        self._ends.add(end)
        try:
            yield end
        finally:
            self._ends.discard(end)


async def _events(plan: AnswerPlan, record: RequestRecord) -> AsyncGenerator[Event, None]:
    first = plan.loop(0).run()
    async with aclosing(first):
        prefilled = await anext(first)
        if not isinstance(prefilled, Prefilled):
            raise TypeError("an answer begins with its prefill")
        record.started(prefilled.cached_tokens)
        yield _started(plan, record.trace_id, prefilled)
        # Only now: what the first has computed of the prompt is there for the others.
        others = [plan.loop(choice).run() for choice in range(1, plan.resolved.n)]
        async with aclosing(merged([first, *others])) as events:
            async for event in events:
                if not isinstance(event, Prefilled):
                    yield event


def _started(plan: AnswerPlan, trace_id: str, prefilled: Prefilled) -> Started:
    return Started(
        request=plan.resolved.request,
        prompt_tokens=len(plan.prompt.ids),
        draft_tokens=plan.resolved.draft_tokens,
        lookup_tokens=plan.resolved.lookup_tokens,
        target_model_id=plan.target_model_id,
        draft_model_id=plan.draft_model_id,
        trace_id=trace_id,
        prefilled=prefilled,
    )
