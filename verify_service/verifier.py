"""The target's side of a session: the committed context, and what is verified against it. No grpc,
no torch, no event loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uag_common.context import ContextVersion
from uag_common.decoding import Choice
from uag_common.decoding_check import fields_of
from uag_common.errors import InvalidRequestError
from uag_common.limits import MAX_CANDIDATES, check_context, check_ids
from uag_common.model import Forward, Model, Step, TokenChooser
from uag_common.prefix_cache import PrefixCache
from verify_service.acceptance import choose_block
from verify_service.open_command import OpenCommand

PROMPT_ROWS = 64
"""Rows of logits in memory at once where log-probabilities of the prompt are told."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The first token, how many of the prompt's were found in a cache, and what is told of those
    from the second on."""

    first: Choice
    cached_tokens: int
    prompt: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """The accepted candidates are committed, then `next`."""

    accepted: tuple[Choice, ...]
    next: Choice


class Verifier:
    """All methods run on the model's worker thread, `open` first and `end` last, but for
    `check_verify`, which costs nothing.

    The context is the prompt and all committed tokens; the last one is not in the cache yet, so
    that it is run once only: together with the next candidates.
    """

    def __init__(
        self, model: Model, prefixes: PrefixCache, command: OpenCommand, chooser: TokenChooser
    ) -> None:
        self._model = model
        self._prefixes = prefixes
        self._command = command
        self._chooser = chooser
        self._sequence = model.new_sequence()
        self._cached = 0
        """Tokens of the context that are in the cache for sure: none once a step has failed."""

    def is_ready(self) -> bool:
        """Whether the session had better be opened now than a little later."""
        return not self._shares or not self._prefixes.coming(
            self._command.prompt_ids, self._command.prefix
        )

    @property
    def _shares(self) -> bool:
        """Of tokens that are not run there are no logits to tell of."""
        return self._command.prompt_top_logprobs is None

    def open(self) -> Step[Opened]:
        """Runs what is not cached of the prompt, and commits the first token."""
        ids, top = self._command.prompt_ids, self._command.prompt_top_logprobs
        shared = self._prefixes.fork(ids, self._command.prefix) if self._shares else None
        if shared is not None:
            self._sequence = shared
        found = self._sequence.cached
        prompt = () if top is None else (yield from self._score(ids, top))
        self._sequence.extend(ids[len(self._sequence.ids) :])
        # From now on, as far as it is computed.
        self._prefixes.share(self._sequence, len(ids), self._command.prefix, computing=True)
        verification = yield from self.verify(())
        self._prefixes.share(self._sequence, len(ids), self._command.prefix)
        return Opened(verification.next, found, prompt)

    def _score(self, ids: Sequence[int], top: int) -> Step[tuple[Choice, ...]]:
        """Runs all `ids` but the last, and tells of all but the first."""
        told: list[Choice] = []
        while (start := len(self._sequence.ids)) < len(ids) - 1:
            rows = min(PROMPT_ROWS, len(ids) - 1 - start, self._sequence.reach(start + 1) - start)
            self._sequence.extend(ids[start : start + rows])
            logits = yield Forward(self._sequence, rows)
            told += self._model.prompt_logprobs(logits, ids[start + 1 : start + 1 + rows], top)
        return tuple(told)

    @property
    def context_length(self) -> int:
        """Tokens of the context: prompt and committed ones."""
        return len(self._sequence.ids)

    def check_verify(self, committed: ContextVersion, candidates: Sequence[int]) -> None:
        """Raises InvalidRequestError, PromptTooLongError or StaleContextError."""
        limits, context = self._model.description, self._sequence.ids
        if len(candidates) > MAX_CANDIDATES:
            raise InvalidRequestError(
                "verify.candidate_ids", f"at most {MAX_CANDIDATES} are allowed"
            )
        check_ids("verify.candidate_ids", candidates, limits.vocabulary_size)
        committed.check_whole(context)
        check_context(len(context) + len(candidates) + 1, limits.context_length)

    def verify(self, candidates: Sequence[int]) -> Step[Verification]:
        """One forward over the last committed token and the candidates; then a choice at one place
        after another, each with the history that it really has. Candidates past the reach of one
        forward are not looked at."""
        committed, self._cached = len(self._sequence.ids), 0
        candidates = candidates[: self._sequence.reach(committed) - committed]
        self._sequence.extend(candidates)
        logits = yield Forward(self._sequence, len(candidates) + 1)
        ids = self._sequence.ids

        def choose(row: int) -> Choice:
            choice = self._chooser.choose(logits, row, ids, committed + row)
            self._chooser.advance(choice.id)
            return choice

        with fields_of("open"):
            accepted, following = choose_block(candidates, choose)
        self._cached = committed + len(accepted)
        self._sequence.truncate(self._cached)
        self._sequence.extend((following.id,))
        return Verification(accepted, following)

    def end(self) -> None:
        """Frees the cache, or gives it to later sessions."""
        self._prefixes.end(self._sequence, self._cached, self._command.prefix)
        self._sequence = self._model.new_sequence()
