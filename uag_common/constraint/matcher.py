"""Which tokens may come next under a constraint.

Knows llguidance and the bytes of a vocabulary. It must not know logits, nor what a service is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from uag_common.constraint.compilation import UncompilableError, compiled, problem
from uag_common.constraint.errors import IllegalTokenError
from uag_common.constraint.grammar import checked_grammar, refused
from uag_common.decoding import Constraint

LONGEST_PIECE = 1024
"""Bytes of the longest token that the library can hold."""

# The library marks its special tokens with this byte, which no UTF-8 text has.
_MARK = b"\xff"


class Grammars:
    """The constraints of one model. `pieces`: what each id spells, None for a token without bytes;
    ids from there to `vocabulary_size` are padding. May be used by several threads."""

    def __init__(
        self, pieces: Sequence[bytes | None], eos_ids: Sequence[int], vocabulary_size: int
    ) -> None:
        self._pieces = pieces
        self._eos_ids = tuple(dict.fromkeys(at for at in eos_ids if at < vocabulary_size))
        self._vocabulary_size = vocabulary_size

    def matcher(self, constraint: Constraint) -> TokenMatcher:
        """At the start of an answer. Raises what `check_constraint` raises, and as that it may take
        a second; InvalidRequestError too if the model has no token to begin or to end with."""
        grammar = checked_grammar(constraint)
        if not self._eos_ids:
            raise refused(constraint, "the model has no token that ends an answer")
        try:
            # Each answer compiles its own, in a millisecond or two: copies of one would share their
            # lexer, and with it the limits that one of them runs into.
            matcher = compiled(self._tokenizer, grammar.source, grammar.branches)
        except UncompilableError as error:
            raise refused(constraint, str(error)) from error
        return TokenMatcher(matcher, constraint, self._eos_ids, self._vocabulary_size)

    @cached_property
    def _tokenizer(self) -> LLTokenizer:
        # It takes a second and 100 MB for a large vocabulary: not before there is a constraint.
        table = _Table(self._spelled(), self._eos_ids[0])
        return LLTokenizer(TokenizerWrapper(table), eos_token=list(self._eos_ids))

    def _spelled(self) -> list[bytes]:
        """What each id may spell in an answer; nothing for an id that can only end it, or that is
        never allowed."""
        pieces = [piece or b"" for piece in self._pieces[: self._vocabulary_size]]
        pieces += [b""] * (self._vocabulary_size - len(pieces))
        for at, piece in enumerate(pieces):
            if len(piece) > LONGEST_PIECE or piece.startswith(_MARK):
                pieces[at] = b""
        for at in self._eos_ids:
            pieces[at] = b""
        return pieces


class TokenMatcher:
    """Follows one answer, token by token. Any spelling of an allowed text is allowed, that is, any
    tokens whose bytes make it. One thread at a time."""

    def __init__(
        self,
        matcher: LLMatcher,
        constraint: Constraint,
        eos_ids: Sequence[int],
        vocabulary_size: int,
    ) -> None:
        self._matcher = matcher
        self._constraint = constraint
        self._eos_ids = frozenset(eos_ids)
        self._vocabulary_size = vocabulary_size
        self._ended = False

    def allowed(self) -> bytes | None:
        """The ids that may come next, one bit each, the lowest bit of a byte first; the EOS ids
        where the answer may end, and they alone where it must. None once it has ended: what follows
        is thrown away. Raises InvalidRequestError if nothing can follow, or if to find it out takes
        more than the limits of the library."""
        if self._ended:
            return None
        mask = self._matcher.compute_bitmask()
        # In error the mask would let the answer end anywhere.
        self._check()
        return mask[: (self._vocabulary_size + 7) // 8]

    def advance(self, token_id: int) -> None:
        """This is the next token of the answer. IllegalTokenError if it is not allowed; then it is
        as if it had not been told. InvalidRequestError as `allowed`."""
        if self._ended:
            return
        if token_id in self._eos_ids:
            self._end(token_id)
        elif not self._consume(token_id):
            raise _illegal(token_id)

    def _end(self, token_id: int) -> None:
        if not self._matcher.is_accepting():
            raise _illegal(token_id)
        self._ended = True

    def _consume(self, token_id: int) -> bool:
        # The library takes an id that it does not know for an error of its own.
        if not 0 <= token_id < self._vocabulary_size:
            return False
        consumed = self._matcher.try_consume_tokens([token_id])
        self._check()
        return consumed == 1

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = problem(self._matcher)
            raise refused(self._constraint, f"the answer cannot go on: {reason}")


class _Table:
    """A vocabulary as the library asks for it."""

    def __init__(self, tokens: list[bytes], eos_token_id: int) -> None:
        self.tokens = tokens
        self.eos_token_id = eos_token_id
        self.bos_token_id = None
        self.special_token_ids: list[int] = []

    def __call__(self, _text: bytes) -> list[int]:
        """The tokens of a text, which nobody asks for where no text is forced."""
        return []


def _illegal(token_id: int) -> IllegalTokenError:
    return IllegalTokenError(f"token {token_id} was chosen where the constraint does not allow it")
