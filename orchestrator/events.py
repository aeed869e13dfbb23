"""What a request yields, in plain values; `uag.orchestrator.v1` explains each field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from orchestrator.request import AnswerRequest


class TokenSource(Enum):
    """Who said a token first. Whoever it was, the target chose it."""

    TARGET = "target"
    DRAFT = "draft"
    CORRECTION = "correction"
    BONUS = "bonus"
    LOOKUP = "lookup"


class FinishReason(Enum):
    """Why the answer ended: the reason that plain decoding would give."""

    EOS = "eos"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LIMIT = "context_limit"
    STOP_SEQUENCE = "stop_sequence"
    STOP_TOKEN = "stop_token"  # noqa: S105 - no password
    TIME_LIMIT = "time_limit"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class TopToken:
    """One of the most probable tokens at a place, and its text by itself."""

    id: int
    logprob: float
    text: str


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token of the prompt and the logarithm of its probability after those before it."""

    id: int
    logprob: float
    top: tuple[TopToken, ...]


@dataclass(frozen=True, slots=True)
class CommittedToken:
    """A token of the answer; `text` has the whole characters that it completes, `position` its
    place in the block of its round."""

    id: int
    source: TokenSource
    round: int
    position: int
    text: str
    logprob: float | None = None
    top: tuple[TopToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt is computed: how much of it was found in a cache, and what was asked to be told
    of its tokens, from the second on."""

    cached_tokens: int
    prompt: tuple[PromptToken, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """The first token is there; `request` has all that was left to the server filled in."""

    request: AnswerRequest
    prompt_tokens: int
    draft_tokens: int
    lookup_tokens: int
    target_model_id: str
    draft_model_id: str
    trace_id: str
    prefilled: Prefilled


@dataclass(frozen=True, slots=True)
class Delta:
    """Tokens of one answer whose text is final."""

    choice: int
    tokens: tuple[CommittedToken, ...]

    @property
    def text(self) -> str:
        """The whole characters that the tokens complete."""
        return "".join(token.text for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Degraded:
    """Drafting was wanted and stopped for a reason outside the request."""

    reason: str
    since_round: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SpeculationFigures:
    """Counts of one request, draft tokens and target tokens told apart."""

    rounds: int
    plain_steps: int
    draft_tokens_proposed: int
    draft_tokens_unconverted: int
    candidates_proposed: int
    candidates_examined: int
    candidates_accepted: int
    draft_tokens_rolled_back: int
    accepted_lengths: tuple[int, ...]
    mean_accepted_length: float
    examined_by_position: tuple[int, ...]
    accepted_by_position: tuple[int, ...]
    rollbacks: int
    draft_tokens_not_representable: int
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
class Usage:
    """Counts in target tokens."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer. `stop` is the stop sequence, the stop id or the EOS that ended it."""

    choice: int
    reason: FinishReason
    stop: str | int | None
    usage: Usage
    speculation: SpeculationFigures
    time: TimeFigures
    degraded: Degraded | None


Event = Started | Delta | Finished
