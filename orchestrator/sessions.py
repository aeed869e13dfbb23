"""What the round loop asks of the two services, in plain values. The clients implement it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.running_draft import RunningDraft
from uag_common.batching.timing import StepTime
from uag_common.context import ContextVersion
from uag_common.decoding import Choice, NoisePosition


@dataclass(frozen=True, slots=True)
class ExchangeTime:
    """Seconds of one command: the whole round trip, and what the service accounts for."""

    round_trip_seconds: float
    step: StepTime

    @property
    def network_seconds(self) -> float:
        spent = self.step.queue_seconds + self.step.forward_seconds
        return max(0.0, self.round_trip_seconds - spent)


@dataclass(frozen=True, slots=True)
class DraftCommand:
    """Roll back to `keep` tokens of the draft's context, append, draft up to `max_tokens`.
    `min_probability` and `first_tokens`: as in the contract; None leaves it to the service."""

    round: int
    keep: int
    kept: ContextVersion
    append_ids: tuple[int, ...]
    max_tokens: int
    position: NoisePosition
    min_probability: float | None = None
    first_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Drafted:
    """Draft ids, in the draft's vocabulary, and how probable the draft thinks each of them."""

    ids: tuple[int, ...]
    time: ExchangeTime
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """What the target's prefill gave: the first token, how many tokens were found in a cache, and
    what was asked to be told of the prompt's tokens, from the second on."""

    first: Choice
    cached_tokens: int
    prompt: tuple[Choice, ...]
    time: ExchangeTime


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the target committed: the accepted candidates, then `next`."""

    accepted: tuple[Choice, ...]
    next: Choice
    time: ExchangeTime


class DraftPort(Protocol):
    """One session of the draft service. Each call raises a UagError that ends the session."""

    async def open(self, context_ids: Sequence[int], answer_start: int) -> ExchangeTime: ...

    async def propose(self, command: DraftCommand) -> Drafted:
        """Ends what still runs of an earlier command, and gives all tokens of this one."""

    def run(self, command: DraftCommand) -> RunningDraft:
        """As `propose`, but does not wait: the tokens come as they are drafted, until the next
        command."""

    def close(self) -> None: ...


class VerifyPort(Protocol):
    """One session of the verify service. Each call raises a UagError that ends the session."""

    async def open(self, prompt_ids: Sequence[int]) -> Opened: ...

    async def verify(
        self, round_number: int, committed: ContextVersion, candidates: Sequence[int]
    ) -> Chosen: ...

    def close(self) -> None: ...
