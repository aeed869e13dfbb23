"""A request for answers in plain values; `uag.orchestrator.v1` explains each field.

None where the client leaves the choice to the server. Knows no gRPC; what is right stands in
`request_check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from orchestrator.prompt.chat_template import ChatMessage
from uag_common.decoding import Constraint, Sampling


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """A text to continue as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation to be answered."""

    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Ids of the target to continue as they stand."""

    ids: tuple[int, ...]


Prompt = TextPrompt | ChatPrompt | TokenPrompt


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How tokens are drawn."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None

    def sampling(self, choice: int = 0) -> Sampling:
        """How one of the answers is drawn."""
        return Sampling(
            temperature=self.temperature or 0.0,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            typical_p=self.typical_p,
            repetition_penalty=self.repetition_penalty,
            frequency_penalty=self.frequency_penalty or 0.0,
            presence_penalty=self.presence_penalty or 0.0,
            logit_bias=self.logit_bias,
            seed=self.seed or 0,
            choice=choice,
        )


@dataclass(frozen=True, slots=True)
class StoppingOptions:
    """Where an answer ends besides its limits."""

    min_new_tokens: int | None = None
    stop_sequences: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False
    ignore_eos: bool = False
    time_limit_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LogprobOptions:
    """Which log-probabilities are told, and of how many of the best tokens beside."""

    top: int | None = None
    prompt_top: int | None = None


class SpeculationMode(Enum):
    """Whether to draft."""

    AUTO = "auto"
    OFF = "off"
    FORCE = "force"


class DraftFailurePolicy(Enum):
    """What becomes of a request whose draft fails."""

    DEGRADE = "degrade"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """How to draft. Nothing here changes a token of the answer."""

    draft_tokens: int | None = None
    lookup_tokens: int | None = None
    mode: SpeculationMode = SpeculationMode.AUTO
    min_probability: float | None = None
    on_draft_failure: DraftFailurePolicy = DraftFailurePolicy.DEGRADE


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What a client asks for."""

    prompt: Prompt
    max_new_tokens: int | None = None
    truncate_prompt_tokens: int | None = None
    sampling: SamplingOptions = SamplingOptions()
    stopping: StoppingOptions = StoppingOptions()
    speculation: SpeculationOptions = SpeculationOptions()
    logprobs: LogprobOptions = LogprobOptions()
    constraint: Constraint | None = None
    n: int | None = None
    request_id: str = ""
    session_id: str = ""
    cache_salt: str = ""
    priority: int = 0
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is chosen each time."""
        return not self.sampling.temperature
