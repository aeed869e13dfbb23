"""What a request came to, as its client saw it. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.client import SpeculationFigures, TimeFigures


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer and its times, in seconds from the moment that it was asked for.

    `first_tokens` came together with the first one. `rounds` are forward passes of the target after
    the one over the prompt. `speculation` and `time` are what the server itself counted: None where
    it is not ours. `degraded`: why drafting stopped, if it did.
    """

    prompt_tokens: int
    ids: tuple[int, ...]
    first_tokens: int
    first_seconds: float
    last_seconds: float
    rounds: int
    speculation: SpeculationFigures | None = None
    time: TimeFigures | None = None
    degraded: str | None = None

    @property
    def seconds_per_token(self) -> float | None:
        """Time per output token: from the first token to the last, over those that came after the
        first ones. None if none did."""
        later = len(self.ids) - self.first_tokens
        return (self.last_seconds - self.first_seconds) / later if later > 0 else None

    @property
    def tokens_per_round(self) -> float | None:
        """What a forward pass of the target commits; the one over the prompt does not count."""
        # Others verify candidates together with the prompt.
        of_prompt = self.first_tokens if self.speculation is None else 1
        return (len(self.ids) - of_prompt) / self.rounds if self.rounds else None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A request that counts, and what it came to. `target` and `draft` are the models' ids."""

    target: str
    draft: str
    prompt: str
    kind: str
    repetition: int
    temperature: float
    seed: int
    way: str
    place: int
    reply: Reply

    @property
    def pair(self) -> tuple[str, int]:
        """What it has in common with the requests that it is compared with."""
        return self.prompt, self.repetition
