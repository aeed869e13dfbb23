"""What comes back, in plain values; `uag.orchestrator.v1` explains each field.

They mirror the contract, not the orchestrator's own values: a server may be newer than its client.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from orchestrator.client.options import Options


class TokenSource(Enum):
    """Who said a token first. Whoever it was, the target chose it."""

    TARGET = "target"
    DRAFT = "draft"
    CORRECTION = "correction"
    BONUS = "bonus"
    LOOKUP = "lookup"
    UNKNOWN = "unknown"
    """One that a newer server knows."""


class FinishReason(Enum):
    """Why an answer ended: the reason that plain decoding would give."""

    EOS = "eos"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LIMIT = "context_limit"
    STOP_SEQUENCE = "stop_sequence"
    STOP_TOKEN = "stop_token"  # noqa: S105 - a reason
    TIME_LIMIT = "time_limit"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    """One that a newer server knows."""


@dataclass(frozen=True, slots=True)
class TopToken:
    """One of the most probable tokens at a place; `logprob` is a natural logarithm."""

    id: int
    logprob: float
    text: str


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token of the prompt, and how probable it was after those before it."""

    id: int
    logprob: float
    top: tuple[TopToken, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """The request as resolved. `parameters` are keywords of `generate`: with the same prompt they
    give the same answer again."""

    prompt_tokens: int
    cached_tokens: int
    max_new_tokens: int
    draft_tokens: int
    lookup_tokens: int
    target_model_id: str
    draft_model_id: str
    parameters: Options
    trace_id: str
    prompt: tuple[PromptToken, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer; `text` has the whole characters that it completes. `logprob` and `top`
    are there if they were asked for."""

    id: int
    source: TokenSource
    round: int
    position: int
    text: str
    logprob: float | None
    top: tuple[TopToken, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """Tokens of one answer whose text is final."""

    choice: int
    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """In tokens of the target."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class SpeculationFigures:
    """Counts of one request, draft tokens and target tokens told apart."""

    rounds: int
    plain_steps: int
    draft_tokens_proposed: int
    draft_tokens_unconverted: int
    draft_tokens_not_representable: int
    draft_tokens_rolled_back: int
    rollbacks: int
    candidates_proposed: int
    candidates_examined: int
    candidates_accepted: int
    accepted_lengths: tuple[int, ...]
    mean_accepted_length: float
    examined_by_position: tuple[int, ...]
    accepted_by_position: tuple[int, ...]
    lookup_rounds: int
    lookup_proposed: int
    lookup_examined: int
    lookup_accepted: int


@dataclass(frozen=True, slots=True)
class TimeFigures:
    """Seconds of one request, by what it waited for."""

    total_seconds: float
    first_token_seconds: float
    prefill_seconds: float
    draft_seconds: float
    convert_seconds: float
    verify_seconds: float
    queue_seconds: float
    network_seconds: float
    plan_seconds: float


@dataclass(frozen=True, slots=True)
class Degraded:
    """Drafting was wanted and stopped for a reason outside the request."""

    reason: str
    since_round: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of one answer. `stop_sequence` or `stop_token_id`: what stopped it, where it was one
    of several."""

    choice: int
    reason: FinishReason
    usage: Usage
    speculation: SpeculationFigures
    time: TimeFigures
    degraded: Degraded | None
    stop_sequence: str | None
    stop_token_id: int | None


Event = Started | Delta | Finished


@dataclass(frozen=True, slots=True)
class Choice:
    """One whole answer."""

    text: str
    tokens: tuple[Token, ...]
    finished: Finished


@dataclass(frozen=True, slots=True)
class Answer:
    """All answers of a request, in the order of their indices; `text`, `tokens` and `finished` are
    those of the first."""

    started: Started
    choices: tuple[Choice, ...]

    @property
    def text(self) -> str:
        return self.choices[0].text

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.choices[0].tokens

    @property
    def finished(self) -> Finished:
        return self.choices[0].finished
