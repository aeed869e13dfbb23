"""One target session: the committed context and what is verified against it. No grpc, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uag_common.context import ContextVersion
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_CANDIDATES, check_context, check_ids
from uag_common.model import Model
from verify_service.acceptance import count_accepted


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """A token of the target's own, and the natural logarithm of its probability."""

    id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Verification:
    """The first `accepted` candidates are committed, then `next`."""

    accepted: int
    next: ChosenToken


class VerifySession:
    """All methods run on the model's worker thread, but `check_...`, which cost nothing.

    The context is the prompt and all committed tokens; the last one is not in the cache yet, so
    that it is run once only: together with the next candidates.
    """

    def __init__(self, model: Model) -> None:
        self._limits = model.description
        self._sequence = model.new_sequence()

    def check_open(self, prompt_ids: Sequence[int]) -> None:
        """Raises InvalidRequestError or PromptTooLongError before any model runs."""
        if self._sequence.ids:
            raise InvalidRequestError("open", "the session is open already")
        if not prompt_ids:
            raise InvalidRequestError("open.prompt_ids", "must not be empty")
        check_ids("open.prompt_ids", prompt_ids, self._limits.vocabulary_size)
        check_context(len(prompt_ids) + 1, self._limits.context_length)

    def open(self, prompt_ids: Sequence[int]) -> ChosenToken:
        """Runs the prompt and commits the first token."""
        self._sequence.extend(prompt_ids)
        return self._choose_and_commit(())[1]

    def check_verify(self, committed: ContextVersion, candidates: Sequence[int]) -> None:
        """Raises InvalidRequestError, PromptTooLongError or StaleContextError."""
        context = self._sequence.ids
        if not context:
            raise InvalidRequestError("verify", "the session must be opened first")
        if len(candidates) > MAX_CANDIDATES:
            raise InvalidRequestError(
                "verify.candidate_ids", f"at most {MAX_CANDIDATES} are allowed"
            )
        check_ids("verify.candidate_ids", candidates, self._limits.vocabulary_size)
        committed.check_whole(context)
        check_context(len(context) + len(candidates) + 1, self._limits.context_length)

    def verify(self, candidates: Sequence[int]) -> Verification:
        """One forward over the last committed token and the candidates."""
        accepted, chosen = self._choose_and_commit(candidates)
        return Verification(accepted, chosen)

    def _choose_and_commit(self, candidates: Sequence[int]) -> tuple[int, ChosenToken]:
        committed = len(self._sequence.ids)
        self._sequence.extend(candidates)
        rows = self._sequence.choose(len(candidates) + 1)
        accepted = count_accepted(candidates, rows.ids)
        chosen = ChosenToken(rows.ids[accepted], rows.logprob(accepted))
        self._sequence.truncate(committed + accepted)
        self._sequence.extend((chosen.id,))
        return accepted, chosen
