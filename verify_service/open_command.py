"""The command that starts a session, and what of it is refused before any model runs. No grpc, no
torch."""

from __future__ import annotations

from dataclasses import dataclass

from uag_common.constraint.errors import IllegalTokenError
from uag_common.decoding import Decoding, PrefixReuse
from uag_common.decoding_check import (
    check_answer_start,
    check_decoding,
    check_sharing,
    check_top,
    fields_of,
)
from uag_common.errors import InvalidRequestError
from uag_common.limits import check_context, check_ids
from uag_common.model import Model, ModelDescription, TokenChooser

MAX_PROMPT_LOGPROBS = 500_000
"""Most log-probabilities that are told of one prompt: they must fit into one message."""


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """Start with this context; `uag.verify.v1.Open` explains each field."""

    prompt_ids: tuple[int, ...]
    answer_start: int
    decoding: Decoding
    prompt_top_logprobs: int | None
    prefix: PrefixReuse
    priority: int

    def check(self, model: ModelDescription) -> None:
        """Raises InvalidRequestError or PromptTooLongError."""
        length = len(self.prompt_ids)
        if not length:
            raise InvalidRequestError("open.prompt_ids", "must not be empty")
        check_ids("open.prompt_ids", self.prompt_ids, model.vocabulary_size)
        check_context(length + 1, model.context_length)
        check_answer_start("open", self.answer_start, 1, length)
        check_decoding("open", self.decoding, model.vocabulary_size)
        check_sharing("open", self.prefix, self.priority)
        self._check_prompt_logprobs("open.prompt_top_logprobs")

    def _check_prompt_logprobs(self, field: str) -> None:
        top = self.prompt_top_logprobs
        check_top(field, top)
        if top is not None and (told := len(self.prompt_ids) * (1 + top)) > MAX_PROMPT_LOGPROBS:
            problem = f"{told} are too many for one answer, it holds {MAX_PROMPT_LOGPROBS}"
            raise InvalidRequestError(field, problem)

    def new_chooser(self, model: Model) -> TokenChooser:
        """A chooser that stands where the context ends. Raises InvalidRequestError for a constraint
        that cannot be compiled, which may take a second, or that the answer so far breaks."""
        with fields_of("open"):
            chooser = model.new_chooser(self.decoding, self.answer_start)
            try:
                for token_id in self.prompt_ids[self.answer_start :]:
                    chooser.advance(token_id)
            except IllegalTokenError as error:
                # Nobody chose it here: it is what the caller says that was chosen.
                raise InvalidRequestError("prompt_ids", str(error)) from error
            return chooser
