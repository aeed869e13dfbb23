"""One request as it is seen from its arrival to its end: the span of its call, with the totals of
all answers, and a line in the log where the operator asks for one. No grpc."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace

from orchestrator.answer_metrics import AnswerMetrics
from orchestrator.events import Degraded
from orchestrator.observation import Observation
from orchestrator.request import AnswerRequest, ChatPrompt
from orchestrator.request_log import EndedRequest, RequestLog
from orchestrator.resolving import Resolved
from uag_common.errors import InvalidRequestError, UagError
from uag_common.telemetry import attributes as names
from uag_common.telemetry.spans import Attributes, current_trace_id, status_of


class RequestRecord:
    """Made where the span of the call is current; `began` is its arrival by
    `time.perf_counter`."""

    def __init__(
        self, request: AnswerRequest, metrics: AnswerMetrics, log: RequestLog, began: float
    ) -> None:
        self.trace_id = current_trace_id()
        self._span = trace.get_current_span()
        self._request = request
        self._metrics = metrics
        self._log = log
        self._began = began
        self._id = ""
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._first_token: float | None = None
        self._observations: list[Observation] = []
        self._said: list[str] = []

    def checked(self) -> None:
        """What the request says of itself may be shown."""
        self._id = self._request.request_id
        self._span.set_attributes(_labels(self._request))

    def resolved(self, resolved: Resolved, target: str, draft: str, prompt_tokens: int) -> None:
        """What will be done; `target` and `draft` are ids of models, the latter may be empty."""
        self._prompt_tokens = prompt_tokens
        self._span.set_attributes(_parameters(resolved, target, draft))

    def observe(self, choice: int) -> Observation:
        """The observation of the answer with that index, the next one."""
        observation = Observation(choice, self._began, self._metrics)
        self._observations.append(observation)
        return observation

    def started(self, cached_tokens: int) -> None:
        """The first token is there, or the answer was over before it."""
        if not self._completion_tokens:
            return
        self._cached_tokens = cached_tokens
        self._first_token = time.perf_counter() - self._began
        self._metrics.first_token(self._first_token)

    def said(self, text: str) -> None:
        """A part of an answer."""
        if self._log.with_text:
            self._said.append(text)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Around the answers: whatever their end, it is told."""
        try:
            yield
            self._metrics.request_ended(time.perf_counter() - self._began)
            self._tell("OK", None)
        except BaseException as error:
            self._tell(status_of(error), _told(error))
            raise

    def _tell(self, status: str, error: str | None) -> None:
        if self._span.is_recording():
            self._span.set_attributes(self._totals())
        self._log.ended(
            self._request,
            EndedRequest(
                request_id=self._id,
                status=status,
                seconds=time.perf_counter() - self._began,
                first_token_seconds=self._first_token,
                prompt_tokens=self._prompt_tokens,
                completion_tokens=self._completion_tokens,
                finish_reasons=self._reasons(),
                degraded=next((one.reason for one in self._degraded()), None),
                error=error,
            ),
            "".join(self._said),
        )

    @property
    def _completion_tokens(self) -> int:
        return sum(observation.tally.committed for observation in self._observations)

    def _reasons(self) -> tuple[str, ...]:
        reasons = (observation.reason for observation in self._observations)
        return tuple(reason.value for reason in reasons if reason is not None)

    def _degraded(self) -> tuple[Degraded, ...]:
        found = (observation.degraded for observation in self._observations)
        return tuple(degraded for degraded in found if degraded is not None)

    def _totals(self) -> Attributes:
        told: dict[str, str | int | float | tuple[str, ...]] = {
            names.INPUT_TOKENS: self._prompt_tokens,
            names.CACHED_INPUT_TOKENS: self._cached_tokens,
            names.FINISH_REASONS: self._reasons(),
            names.OUTPUT_TOKENS: self._completion_tokens,
            names.ROUNDS_NOT_SHOWN: sum(one.rounds_not_shown for one in self._observations),
            names.REOPENS: sum(one.reopens for one in self._observations),
            names.DRAFT_WAIT_SECONDS: sum(one.draft_wait_seconds for one in self._observations),
        }
        if self._first_token is not None:
            told[names.FIRST_TOKEN_SECONDS] = self._first_token
        counts = [one.tally.speculation() for one in self._observations]
        times = [one.tally.times() for one in self._observations]
        told |= {name: sum(getattr(one, of) for one in counts) for name, of in _COUNTS.items()}
        told |= {name: sum(getattr(one, of) for one in times) for name, of in _TIMES.items()}
        for degraded in self._degraded()[:1]:
            told[names.DEGRADED_REASON] = degraded.reason
            told[names.DEGRADED_ROUND] = degraded.since_round
            told[names.DEGRADED_SECONDS] = degraded.seconds
        return told


_COUNTS: Mapping[str, str] = {
    names.ROUNDS: "rounds",
    names.PLAIN_STEPS: "plain_steps",
    names.DRAFTED: "draft_tokens_proposed",
    names.UNCONVERTED: "draft_tokens_unconverted",
    names.PROPOSED: "candidates_proposed",
    names.EXAMINED: "candidates_examined",
    names.ACCEPTED: "candidates_accepted",
    names.ROLLED_BACK: "draft_tokens_rolled_back",
    names.ROLLBACKS: "rollbacks",
}
_TIMES: Mapping[str, str] = {
    names.PREFILL_SECONDS: "prefill_seconds",
    names.DRAFT_SECONDS: "draft_seconds",
    names.CONVERT_SECONDS: "convert_seconds",
    names.VERIFY_SECONDS: "verify_seconds",
    names.QUEUE_SECONDS: "queue_seconds",
    names.NETWORK_SECONDS: "network_seconds",
}


def _told(error: BaseException) -> str | None:
    """What may be told of it: what is wrong with a field can be a text of the client's."""
    if isinstance(error, InvalidRequestError):
        # An index can be a key that the client gave.
        return error.field.partition("[")[0]
    return str(error) if isinstance(error, UagError) else None


def _signed(seed: int | None) -> int | None:
    """Half of the seeds are more than an attribute can hold."""
    return seed if seed is not None and seed < 1 << 63 else None


def _labels(request: AnswerRequest) -> Attributes:
    """What a request says of itself."""
    return {
        **{names.METADATA + key: value for key, value in request.metadata},
        names.REQUEST_ID: request.request_id,
        names.RESPONSE_ID: request.request_id,
        names.PRIORITY: request.priority,
    }


def _parameters(resolved: Resolved, target: str, draft: str) -> Attributes:
    sampling = resolved.request.sampling
    chat = isinstance(resolved.request.prompt, ChatPrompt)
    told: dict[str, str | int | float | None] = {
        names.OPERATION: "chat" if chat else "text_completion",
        names.PROVIDER: "uag",
        names.REQUEST_MODEL: target,
        names.RESPONSE_MODEL: target,
        names.DRAFT_MODEL: draft,
        names.REQUEST_MAX_TOKENS: resolved.max_new_tokens,
        names.REQUEST_TEMPERATURE: sampling.temperature,
        names.REQUEST_TOP_P: sampling.top_p,
        names.REQUEST_TOP_K: sampling.top_k,
        names.REQUEST_SEED: _signed(sampling.seed),
        names.REQUEST_CHOICES: resolved.n,
        names.PLANNED: resolved.draft_tokens,
        names.SPECULATION: resolved.request.speculation.mode.value,
    }
    return {name: value for name, value in told.items() if value is not None}
