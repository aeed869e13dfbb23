"""Drafting with a causal model, one token a step. No grpc, no torch, no event loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from uag_common.context import ContextVersion
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_DRAFT_TOKENS, check_context, check_ids
from uag_common.model import Model


class ProposalEnd(Enum):
    """Why a proposal ended; `uag.draft.v1.ProposalEnd` explains each."""

    LENGTH = "length"
    EOS = "eos"
    LOW_PROBABILITY = "low_probability"
    CONTEXT_LIMIT = "context_limit"


@dataclass(frozen=True, slots=True)
class DraftToken:
    """A drafted id and the draft model's probability of it."""

    id: int
    probability: float


@dataclass(frozen=True, slots=True)
class ProposeCommand:
    """Roll back to `keep` tokens, append, draft up to `max_tokens` from there."""

    keep: int
    kept: ContextVersion
    append_ids: tuple[int, ...]
    max_tokens: int
    min_probability: float


class CausalDrafter:
    """One draft session's context: prompt, committed text, and what was drafted last.

    The last token is never in the cache, since nothing was chosen after it yet: whatever comes
    next, one token at least is there to run.
    """

    def __init__(self, model: Model) -> None:
        self._limits = model.description
        self._eos = frozenset(model.description.roles.eos_ids)
        self._sequence = model.new_sequence()

    def check_open(self, context_ids: Sequence[int]) -> None:
        """Raises InvalidRequestError or PromptTooLongError before any model runs."""
        if self._sequence.ids:
            raise InvalidRequestError("open", "the session is open already")
        if not context_ids:
            raise InvalidRequestError("open.context_ids", "must not be empty")
        check_ids("open.context_ids", context_ids, self._limits.vocabulary_size)
        check_context(len(context_ids), self._limits.context_length)

    def open(self, context_ids: Sequence[int]) -> None:
        """Fills the cache."""
        if len(context_ids) > 1:
            self._sequence.extend(context_ids[:-1])
            self._sequence.choose(1)
        self._sequence.extend(context_ids[-1:])

    def check_propose(self, command: ProposeCommand) -> None:
        """Raises InvalidRequestError, PromptTooLongError or StaleContextError; nothing changes."""
        if not self._sequence.ids:
            raise InvalidRequestError("propose", "the session must be opened first")
        if not 1 <= command.max_tokens <= MAX_DRAFT_TOKENS:
            raise InvalidRequestError("propose.max_tokens", f"must be from 1 to {MAX_DRAFT_TOKENS}")
        if not 0.0 <= command.min_probability <= 1.0:
            raise InvalidRequestError("propose.min_probability", "must be from 0 to 1")
        if command.kept.length != command.keep:
            raise InvalidRequestError("propose.kept.length", "must be that of `keep`")
        if not command.keep and not command.append_ids:
            raise InvalidRequestError("propose", "the context must not become empty")
        check_ids("propose.append_ids", command.append_ids, self._limits.vocabulary_size)
        check_context(command.keep + len(command.append_ids), self._limits.context_length)
        command.kept.check_prefix(self._sequence.ids)

    def begin(self, command: ProposeCommand) -> None:
        """Sets the context from which the next steps draft."""
        self._sequence.truncate(command.keep)
        self._sequence.extend(command.append_ids)

    def step(self, min_probability: float) -> DraftToken | ProposalEnd:
        """Drafts one token, or says why none comes."""
        if len(self._sequence.ids) >= self._limits.context_length:
            return ProposalEnd.CONTEXT_LIMIT
        rows = self._sequence.choose(1)
        token = DraftToken(rows.ids[0], math.exp(rows.logprob(0)))
        if token.probability < min_probability:
            return ProposalEnd.LOW_PROBABILITY
        self._sequence.extend((token.id,))
        return token

    def ends(self, token: DraftToken) -> bool:
        """Whether nothing can follow the token."""
        return token.id in self._eos
