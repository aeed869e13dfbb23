"""Answers requests with the pair of models that is there: from the checked request to the events of
all its answers. The loop of each answer stands in `round_loop`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from opentelemetry.trace import Tracer

from orchestrator.answer_end import AnswerEnd
from orchestrator.answer_plan import AnswerPlan, RequestTrace
from orchestrator.choices import merged
from orchestrator.events import Event, Prefilled, Started
from orchestrator.pair import Pair
from orchestrator.preparation import Preparation
from orchestrator.request import AnswerRequest
from orchestrator.request_check import check_request
from orchestrator.resolving import (
    Defaults,
    check_answers,
    check_prompt_length,
    identified,
    resolve,
)
from uag_common.tracing import RequestLabels, current_traceparent, request_span

SPAN = "uag.orchestrator.v1.Orchestrator/Generate"


class Answering:
    """Holds the answers that are being written."""

    def __init__(
        self, pair: Pair, preparation: Preparation, defaults: Defaults, tracer: Tracer
    ) -> None:
        self._pair = pair
        self._preparation = preparation
        self._defaults = defaults
        self._tracer = tracer
        self._ends: set[AnswerEnd] = set()

    async def answer(self, request: AnswerRequest, traceparent: str) -> AsyncGenerator[Event, None]:
        """`Started`, any number of deltas, `Finished` for each answer. `traceparent` is the
        caller's trace context, or empty. Raises InvalidRequestError, PromptTooLongError or
        OverloadedError before any model runs, PeerUnavailableError if there is no target."""
        began = time.perf_counter()
        check_request(request)
        request = identified(request)
        labels = RequestLabels(request.request_id, request.priority, request.metadata)
        with (
            request_span(self._tracer, SPAN, traceparent, labels) as trace_id,
            self._ending(request.stopping.time_limit_seconds) as end,
        ):
            trace = RequestTrace(trace_id, current_traceparent())
            plan = await self._plan(request, trace, end, began)
            async with aclosing(_events(plan)) as events:
                async for event in events:
                    yield event

    async def _plan(
        self, request: AnswerRequest, trace: RequestTrace, end: AnswerEnd, began: float
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
        plan = AnswerPlan(self._pair, resolved, target, prompt, trace, end, began)
        await plan.prepare_drafts(self._preparation)
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


async def _events(plan: AnswerPlan) -> AsyncGenerator[Event, None]:
    first = plan.loop(0).run()
    async with aclosing(first):
        prefilled = await anext(first)
        if not isinstance(prefilled, Prefilled):
            raise TypeError("an answer begins with its prefill")
        yield _started(plan, prefilled)
        # Only now: what the first has computed of the prompt is there for the others.
        others = [plan.loop(choice).run() for choice in range(1, plan.resolved.n)]
        async with aclosing(merged([first, *others])) as events:
            async for event in events:
                if not isinstance(event, Prefilled):
                    yield event


def _started(plan: AnswerPlan, prefilled: Prefilled) -> Started:
    return Started(
        request=plan.resolved.request,
        prompt_tokens=len(plan.prompt.ids),
        draft_tokens=plan.resolved.draft_tokens,
        target_model_id=plan.target.description.model_id,
        draft_model_id=plan.draft.description.model_id if plan.draft is not None else "",
        trace_id=plan.trace.trace_id,
        prefilled=prefilled,
    )
