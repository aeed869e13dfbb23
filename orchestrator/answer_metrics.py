"""What the orchestrator counts of answers and rounds.

Tokens are of the target's vocabulary, but for those of `uag_draft_model_...`, which are of the
draft's own. A draft in the sense of `spec_decode` is a round with at least one candidate.
"""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from orchestrator.events import Degraded, FinishReason
from uag_common.limits import MAX_DRAFT_TOKENS
from uag_common.telemetry.metrics import REQUEST_BUCKETS, STEP_BUCKETS

TOKEN_BUCKETS = tuple(sorted({*range(9), 12, 16, 24, 32, 48, MAX_DRAFT_TOKENS}))


class AnswerMetrics:
    """Of one orchestrator."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._requests()
        self._rounds()
        self._drafts()

    def _requests(self) -> None:
        self._latency = self._seconds(
            "uag_e2e_request_latency", "A request from its arrival to its end.", REQUEST_BUCKETS
        )
        self._first_token = self._seconds(
            "uag_time_to_first_token", "A request from its arrival to its first token."
        )
        self._per_token = self._seconds(
            "uag_time_per_output_token",
            "From the first token of an answer to its end, by the tokens after the first.",
        )
        self._queue = self._seconds(
            "uag_request_queue_time", "What an answer waited for the two models to be free."
        )
        self._answers = self._counter("uag_answers", "Answers that ended.", "finish_reason")
        self._prompt = self._counter(
            "uag_prompt_tokens", "Tokens of prompts, for each answer that was begun."
        )
        self._cached = self._counter(
            "uag_prompt_cached_tokens", "Tokens of prompts that were found in the target's cache."
        )
        self._generated = self._counter("uag_generation_tokens", "Tokens of answers.")
        self._degraded = self._counter(
            "uag_degraded_answers", "Answers that ended without the drafting that was wanted."
        )
        self._degraded_seconds = self._counter(
            "uag_degraded_seconds", "Seconds of answers from where their drafting stopped."
        )

    def _rounds(self) -> None:
        self._rounds_done = self._counter(
            "uag_rounds", "Verifications, those without a candidate included.", "drafted"
        )
        self._round = self._seconds(
            "uag_round", "A round, from its plan to its commit.", STEP_BUCKETS, "drafted"
        )
        self._convert = self._seconds("uag_convert", "Conversion between the two in a round.")
        self._planned = Histogram(
            "uag_planned_draft_tokens",
            "Draft tokens asked for in a round, 0 included.",
            registry=self._registry,
            buckets=TOKEN_BUCKETS,
        )
        self._drafts_done = self._counter(
            "uag_spec_decode_num_drafts", "Rounds with at least one candidate of the draft model."
        )
        self._proposed = self._counter(
            "uag_spec_decode_num_draft_tokens",
            "Candidates of the draft model: target tokens sent for verification.",
        )
        self._examined = self._counter(
            "uag_spec_decode_num_examined_tokens",
            "Candidates that were looked at: the accepted ones and the first rejected one.",
        )
        self._accepted = self._counter(
            "uag_spec_decode_num_accepted_tokens", "Candidates that the target chose itself."
        )
        examined_at = self._counter(
            "uag_spec_decode_num_examined_tokens_per_pos",
            "Of the candidates at a place, from 0, those that were looked at.",
            "position",
        )
        accepted_at = self._counter(
            "uag_spec_decode_num_accepted_tokens_per_pos",
            "Of the candidates at a place, from 0, those that were accepted.",
            "position",
        )
        # Looked up for each candidate.
        self._examined_at, self._accepted_at = cache(examined_at.labels), cache(accepted_at.labels)
        self._copied = self._counter(
            "uag_lookup_tokens", "Candidates that were looked up in earlier text."
        )
        self._copied_examined = self._counter(
            "uag_lookup_examined_tokens", "Of these, those that were looked at."
        )
        self._copied_accepted = self._counter(
            "uag_lookup_accepted_tokens", "Of these, those that the target chose itself."
        )
        self._accepted_length = Histogram(
            "uag_spec_decode_accepted_length",
            "Accepted candidates of a round with candidates of the draft model.",
            registry=self._registry,
            buckets=TOKEN_BUCKETS,
        )

    def _drafts(self) -> None:
        self._drafted = self._counter(
            "uag_draft_model_tokens", "Draft tokens that the draft model proposed."
        )
        self._unconverted = self._counter(
            "uag_draft_model_tokens_unconverted", "Draft tokens that gave no candidate."
        )
        self._rolled_back = self._counter(
            "uag_draft_model_tokens_rolled_back", "Draft tokens taken back from the draft's cache."
        )
        self._rollbacks = self._counter(
            "uag_draft_rollbacks", "Times that draft tokens were taken back."
        )
        self._serving = Gauge(
            "uag_peer_serving",
            "1 while the service is there.",
            ("peer",),
            registry=self._registry,
        )

    def peer_serving(self, peer: str, serving: bool) -> None:
        self._serving.labels(peer).set(serving)

    def prefilled(self, prompt_tokens: int, cached_tokens: int) -> None:
        self._prompt.inc(prompt_tokens)
        self._cached.inc(cached_tokens)
        self._generated.inc()

    def first_token(self, seconds: float) -> None:
        self._first_token.observe(seconds)

    def request_ended(self, seconds: float) -> None:
        self._latency.observe(seconds)

    def planned(self, draft_tokens: int) -> None:
        self._planned.observe(draft_tokens)

    def drafted(self, draft_tokens: int) -> None:
        self._drafted.inc(draft_tokens)

    def unconverted(self, draft_tokens: int) -> None:
        self._unconverted.inc(draft_tokens)

    def rolled_back(self, draft_tokens: int) -> None:
        self._rolled_back.inc(draft_tokens)
        self._rollbacks.inc(draft_tokens > 0)

    def round_ended(self, seconds: float, convert_seconds: float, *, drafted: bool) -> None:
        self._round.labels(_word(drafted)).observe(seconds)
        self._convert.observe(convert_seconds)

    def committed(self, tokens: int, *, drafted: bool) -> None:
        """By a round, which had candidates or not."""
        self._generated.inc(tokens)
        self._rounds_done.labels(_word(drafted)).inc()

    def examined(self, candidates: int, examined: int, accepted: int) -> None:
        """Of the draft model's candidates in a round."""
        self._drafts_done.inc()
        self._proposed.inc(candidates)
        self._examined.inc(examined)
        self._accepted.inc(accepted)
        self._accepted_length.observe(accepted)
        for place in range(examined):
            self._examined_at(place).inc()
        for place in range(accepted):
            self._accepted_at(place).inc()

    def copied(self, candidates: int, examined: int, accepted: int) -> None:
        """As `examined`, of candidates that were looked up."""
        self._copied.inc(candidates)
        self._copied_examined.inc(examined)
        self._copied_accepted.inc(accepted)

    def answered(
        self, reason: FinishReason, seconds_per_token: float | None, queue_seconds: float
    ) -> None:
        self._answers.labels(reason.value).inc()
        self._queue.observe(queue_seconds)
        if seconds_per_token is not None:
            self._per_token.observe(seconds_per_token)

    def degraded(self, degraded: Degraded) -> None:
        self._degraded.inc()
        self._degraded_seconds.inc(degraded.seconds)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self._registry)

    def _seconds(
        self, name: str, meaning: str, buckets: tuple[float, ...] = STEP_BUCKETS, *labels: str
    ) -> Histogram:
        return Histogram(
            f"{name}_seconds", meaning, labels, registry=self._registry, buckets=buckets
        )


def _word(drafted: bool) -> str:
    return "true" if drafted else "false"
