"""The commands of a draft session, and what of them is refused before any model runs. No grpc, no
torch."""

from __future__ import annotations

from dataclasses import dataclass

from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition, PrefixReuse, Sampling
from uag_common.decoding_check import (
    check_answer_start,
    check_bias_ids,
    check_sampling,
    check_sharing,
)
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_DRAFT_TOKENS, check_context, check_ids
from uag_common.model import ModelDescription


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """Start with this context; `uag.draft.v1.Open` explains each field."""

    context_ids: tuple[int, ...]
    answer_start: int
    sampling: Sampling
    prefix: PrefixReuse
    priority: int

    def check(self, model: ModelDescription) -> None:
        """Raises InvalidRequestError or PromptTooLongError."""
        if not self.context_ids:
            raise InvalidRequestError("open.context_ids", "must not be empty")
        check_ids("open.context_ids", self.context_ids, model.vocabulary_size)
        check_context(len(self.context_ids), model.context_length)
        # A context of the draft's may be of the answer alone.
        check_answer_start("open", self.answer_start, 0, len(self.context_ids))
        check_sampling("open.sampling", self.sampling)
        check_bias_ids("open.sampling", self.sampling, model.vocabulary_size)
        check_sharing("open", self.prefix, self.priority)


@dataclass(frozen=True, slots=True)
class ProposeCommand:
    """Roll back to `keep` tokens, append, draft up to `max_tokens` from there; `position` is where
    the first of them stands in the answer. `stream`: each token is told of as soon as it is there,
    the first `first_tokens` together.
    """

    keep: int
    kept: ContextVersion
    append_ids: tuple[int, ...]
    max_tokens: int
    min_probability: float
    position: NoisePosition | None = None
    stream: bool = False
    first_tokens: int = 0

    def check(self, model: ModelDescription, sampling: Sampling) -> None:
        """Raises InvalidRequestError or PromptTooLongError. Whether the kept tokens are those that
        are meant is not told here."""
        if not 0 <= self.max_tokens <= MAX_DRAFT_TOKENS:
            raise InvalidRequestError("propose.max_tokens", f"must be from 0 to {MAX_DRAFT_TOKENS}")
        if not 0.0 <= self.min_probability <= 1.0:
            raise InvalidRequestError("propose.min_probability", "must be from 0 to 1")
        if self.position is None and not sampling.greedy:
            raise InvalidRequestError("propose.position", "is needed where tokens are drawn")
        if self.kept.length != self.keep:
            raise InvalidRequestError("propose.kept.length", "must be that of `keep`")
        if not self.keep and not self.append_ids:
            raise InvalidRequestError("propose", "the context must not become empty")
        check_ids("propose.append_ids", self.append_ids, model.vocabulary_size)
        check_context(self.keep + len(self.append_ids), model.context_length)
