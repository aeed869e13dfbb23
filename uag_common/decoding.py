"""How a session chooses its tokens, in plain values; `uag.model.v1` explains each field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class NoisePosition:
    """Where in an answer a token is drawn: bytes before it, and tokens without bytes since the last
    byte, so that no two draws of an answer are at one place."""

    offset: int = 0
    repeats: int = 0

    def after(self, piece: bytes | None) -> NoisePosition:
        """The position behind a token that spells `piece`."""
        if piece:
            return NoisePosition(self.offset + len(piece))
        return NoisePosition(self.offset, self.repeats + 1)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Processors of the logits, and the key of the noise that draws. `temperature` 0: greedy, and
    the filters (top_k to typical_p) play no part. None: off."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0
    choice: int = 0

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is chosen, and nothing is drawn."""
        return self.temperature == 0.0


class ConstraintKind(Enum):
    """In which language a constraint is written."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    CHOICE = "choice"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class Constraint:
    """What an answer must look like: one source text, or for CHOICE one text for each choice."""

    kind: ConstraintKind
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decoding:
    """All that decides which tokens a session chooses, and what is told of them.

    `end_ids` are not chosen before the answer has `min_new_tokens`. `top_logprobs`: None tells no
    log-probabilities, 0 that of the chosen token alone.
    """

    sampling: Sampling = Sampling()
    min_new_tokens: int = 0
    end_ids: tuple[int, ...] = ()
    constraint: Constraint | None = None
    top_logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token and the natural logarithm of its probability."""

    id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The token that was chosen at a place, and what is told of it."""

    id: int
    logprob: float | None = None
    top: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class PrefixReuse:
    """Whose cache a session may begin with: those of equal `key`; "" of none. `keep`: its own is
    kept for others when it ends."""

    key: bytes = b""
    keep: bool = False
