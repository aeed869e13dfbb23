"""Drafting with a causal model, one token a step. No grpc, no torch, no event loop."""

from __future__ import annotations

import math
from enum import Enum

from draft_service.commands import OpenCommand, ProposeCommand
from draft_service.drafting import Drafting, DraftToken
from uag_common.decoding import Choice, Decoding
from uag_common.decoding_check import fields_of
from uag_common.model import Forward, Model, Step
from uag_common.prefix_cache import PrefixCache


class ProposalEnd(Enum):
    """Why a proposal ended; `uag.draft.v1.ProposalEnd` explains each."""

    LENGTH = "length"
    EOS = "eos"
    LOW_PROBABILITY = "low_probability"
    CONTEXT_LIMIT = "context_limit"
    SUPERSEDED = "superseded"


class CausalDrafter:
    """One draft session's context: prompt, committed text, and what was drafted last. All
    methods run on the model's worker thread, `open` first and `end` last, but for
    `check_propose`, which costs nothing.

    The last token is never in the cache, since nothing was chosen after it yet: whatever comes
    next, one token at least is there to run.
    """

    def __init__(self, model: Model, prefixes: PrefixCache, command: OpenCommand) -> None:
        self._model = model
        self._prefixes = prefixes
        self._command = command
        # A proposal tells how probable each of its tokens is.
        decoding = Decoding(sampling=command.sampling, top_logprobs=0)
        self._chooser = model.new_chooser(decoding, command.answer_start)
        self._eos = frozenset(model.description.roles.eos_ids)
        self._sequence = model.new_sequence()
        self._cached = 0
        """Tokens of the context that are in the cache for sure: none once a step has failed."""
        self._shared = 0

    def is_ready(self) -> bool:
        """Whether the session had better be opened now than a little later."""
        return not self._prefixes.coming(self._command.context_ids, self._command.prefix)

    def open(self) -> Step[int]:
        """Fills the cache; tells how many tokens were found in another session's."""
        ids = self._command.context_ids
        shared = self._prefixes.fork(ids, self._command.prefix)
        if shared is not None:
            self._sequence = shared
        found, to_run = self._sequence.cached, len(ids) - 1
        self._sequence.extend(ids[len(self._sequence.ids) : to_run])
        if found < to_run:
            # From now on, as far as it is computed.
            self._prefixes.share(self._sequence, to_run, self._command.prefix, computing=True)
            yield Forward(self._sequence, 1)
        self._share(to_run)
        self._sequence.extend(ids[to_run:])
        self._cached = to_run
        return found

    def _share(self, length: int) -> None:
        self._shared = length
        self._prefixes.share(self._sequence, length, self._command.prefix)

    def check_propose(self, command: ProposeCommand) -> None:
        """Raises InvalidRequestError, PromptTooLongError or StaleContextError; nothing changes."""
        command.check(self._model.description, self._command.sampling)
        command.kept.check_prefix(self._sequence.ids)

    @property
    def context_length(self) -> int:
        """Tokens of the context, drafted ones included."""
        return len(self._sequence.ids)

    def begin(self, command: ProposeCommand) -> int:
        """Sets the context from which the next steps draft; by how many tokens it went back."""
        rolled_back = self.context_length - command.keep
        if command.keep < self._shared:
            self._share(command.keep)
        self._sequence.truncate(command.keep)
        self._cached = min(self._cached, command.keep)
        self._sequence.extend(command.append_ids)
        if command.position is not None:
            self._chooser.move(command.position)
        return rolled_back

    def draft(self, command: ProposeCommand, tokens: Drafting) -> Step[ProposalEnd]:
        """Drafts into `tokens`, one after another; gives why no more come."""
        while len(tokens) < command.max_tokens:
            if tokens.superseded():
                return ProposalEnd.SUPERSEDED
            found = yield from self._next(command.min_probability)
            if isinstance(found, ProposalEnd):
                return found
            tokens.append(found)
            if found.id in self._eos:
                return ProposalEnd.EOS
        return ProposalEnd.LENGTH

    def _next(self, min_probability: float) -> Step[DraftToken | ProposalEnd]:
        length = len(self._sequence.ids)
        if length >= self._model.description.context_length:
            return ProposalEnd.CONTEXT_LIMIT
        self._cached = 0
        logits = yield Forward(self._sequence, 1)
        with fields_of("open"):
            choice = self._chooser.choose(logits, 0, self._sequence.ids, length)
        self._cached = length
        token = DraftToken(choice.id, _probability(choice))
        if token.probability < min_probability:
            return ProposalEnd.LOW_PROBABILITY
        self._sequence.extend((token.id,))
        self._chooser.advance(token.id)
        return token

    def end(self) -> None:
        """Frees the cache, or gives it to later sessions."""
        self._prefixes.end(self._sequence, self._cached, self._command.prefix)
        self._sequence = self._model.new_sequence()


def _probability(choice: Choice) -> float:
    if choice.logprob is None:
        raise TypeError("the chooser was asked for log-probabilities and tells none")
    return math.exp(choice.logprob)
