"""What a request yields, in plain values; `uag.orchestrator.v1` explains each field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class TokenSource(Enum):
    """Who said a token first. Whoever it was, the target chose it."""

    TARGET = "target"
    DRAFT = "draft"
    CORRECTION = "correction"
    BONUS = "bonus"


class FinishReason(Enum):
    """Why the answer ended: the reason that plain decoding would give."""

    EOS = "eos"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LIMIT = "context_limit"


@dataclass(frozen=True, slots=True)
class CommittedToken:
    """A token of the answer; `text` has the whole characters that it completes."""

    id: int
    source: TokenSource
    round: int
    text: str


@dataclass(frozen=True, slots=True)
class Started:
    """The request as resolved; nothing is generated yet."""

    prompt_tokens: int
    max_new_tokens: int
    draft_tokens: int
    target_model_id: str
    draft_model_id: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The committed tokens of one round."""

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


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer."""

    reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    speculation: SpeculationFigures
    time: TimeFigures
    degraded: Degraded | None


Event = Started | Delta | Finished
