"""The processors of the logits: transformers' own, in transformers' order, and one of OpenAI's.

Which of them a decoding needs, and in what order; nothing of how a token is then chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from transformers.generation.logits_process import (
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from uag_common.decoding import Decoding, Sampling

Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From a context's ids, int64 [1, length], and logits, float32 [1, vocabulary], to new logits."""

LOWEST_TEMPERATURE = 1e-5
"""Below it quotients overflow, and long before it each draw gives the most probable token."""


@dataclass(frozen=True, slots=True)
class AnswerPenalty:
    """Takes `frequency` off a token's logit for each time that the answer has it, and `presence`
    if the answer has it at all, as OpenAI's API defines the two. The prompt does not count."""

    frequency: float
    presence: float
    answer_start: int

    def __call__(self, context: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        counts = context[0, self.answer_start :].bincount(minlength=logits.shape[-1])
        return logits - self.frequency * counts - self.presence * (counts > 0)


class Matcher(Protocol):
    """Follows an answer under a constraint; `uag_common.constraint.matcher` has the real one."""

    def allowed(self) -> bytes | None:
        """The ids that may come next, one bit each, the lowest bit of a byte first; None: all."""

    def advance(self, token_id: int) -> None:
        """This is the next token of the answer."""


@dataclass(frozen=True, slots=True)
class ConstraintMask:
    """Takes away what a constraint does not allow where its matcher stands."""

    matcher: Matcher

    def __call__(self, context: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        allowed = self.matcher.allowed()
        if allowed is None:
            return logits
        packed = torch.frombuffer(bytearray(allowed), dtype=torch.uint8).to(logits.device)
        places = torch.arange(8, dtype=torch.uint8, device=logits.device)
        forbidden = (packed[:, None] >> places & 1).flatten() == 0
        return logits.masked_fill(forbidden[: logits.shape[-1]], -math.inf)


@dataclass(frozen=True, slots=True)
class OverPossible:
    """Warpers over those tokens alone that are possible still: they sort, and to sort a vocabulary
    of 262,144 takes 30 ms."""

    warpers: tuple[Processor, ...]

    def __call__(self, context: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        possible = (logits[0] != -math.inf).nonzero()[:, 0]
        if not len(possible):
            return logits
        part = logits[:, possible]
        for warper in self.warpers:
            part = warper(context, part)
        return torch.full_like(logits, -math.inf).index_copy_(-1, possible, part)


def processors(decoding: Decoding, answer_start: int, device: torch.device) -> Iterator[Processor]:
    """Those that look at the context, for an answer that begins at index `answer_start` of it.
    They come before a constraint's mask."""
    sampling = decoding.sampling
    if sampling.logit_bias:
        yield SequenceBiasLogitsProcessor({(token,): bias for token, bias in sampling.logit_bias})
    if sampling.repetition_penalty not in (None, 1.0):
        yield RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty)
    if sampling.frequency_penalty or sampling.presence_penalty:
        yield AnswerPenalty(sampling.frequency_penalty, sampling.presence_penalty, answer_start)
    if decoding.min_new_tokens and decoding.end_ids:
        yield MinNewTokensLengthLogitsProcessor(
            answer_start, decoding.min_new_tokens, list(decoding.end_ids), device=str(device)
        )


def warpers(sampling: Sampling) -> Iterator[Processor]:
    """Those of a token that is drawn. They come after the mask, and look at no context."""
    if sampling.greedy:
        return
    if sampling.temperature != 1.0:
        yield TemperatureLogitsWarper(max(sampling.temperature, LOWEST_TEMPERATURE))
    if sampling.top_k is not None:
        yield TopKLogitsWarper(sampling.top_k)
    if sorting := tuple(_sorting(sampling)):
        yield OverPossible(sorting)


def _sorting(sampling: Sampling) -> Iterator[Processor]:
    if sampling.top_p is not None and sampling.top_p < 1.0:
        yield TopPLogitsWarper(sampling.top_p)
    if sampling.min_p:
        yield MinPLogitsWarper(sampling.min_p)
    if sampling.typical_p is not None and sampling.typical_p < 1.0:
        yield TypicalLogitsWarper(sampling.typical_p)
