"""A model without weights whose logits come from its cache, so that a stale cache shows. The next
token is a function of the whole context, and of where in the answer it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from weakref import WeakSet

from tests.fakes import FakeModel
from uag_common.decoding import Choice, Decoding, NoisePosition
from uag_common.model import Logits, TokenizerFile

IDS = 4
"""So few that guesses are right now and then; 0 is the EOS."""


def next_token(context: Sequence[int], answer: Sequence[int], seed: int = 0) -> int:
    digest = blake2b(repr((list(context), list(answer), seed)).encode(), digest_size=4).digest()
    return 1 + int.from_bytes(digest) % (IDS - 1)


def continuation(prompt: Sequence[int], count: int, answer_start: int, seed: int) -> list[int]:
    """The next `count` tokens, by the definition alone."""
    context = list(prompt)
    for _ in range(count):
        context.append(next_token(context, context[answer_start:], seed))
    return context[len(prompt) :]


@dataclass(frozen=True, slots=True)
class CachedLogits:
    contexts: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:
        return len(self.contexts)


@dataclass(slots=True, weakref_slot=True, eq=False)
class CachedSequence:
    """`runs` has how many tokens each forward ran, `living` all sequences that somebody holds."""

    runs: list[int]
    living: WeakSet[CachedSequence]
    ids: list[int] = field(default_factory=list)
    cache: list[int] = field(default_factory=list)

    @property
    def cache_bytes(self) -> int:
        return 100 * len(self.cache)

    def __post_init__(self) -> None:
        self.living.add(self)

    def truncate(self, length: int) -> None:
        del self.ids[length:], self.cache[length:]

    def extend(self, ids: Sequence[int]) -> None:
        self.ids.extend(ids)

    def forward(self, rows: int) -> CachedLogits:
        if not 1 <= rows <= len(self.ids):
            raise ValueError(f"{rows} rows asked of a context of {len(self.ids)} tokens")
        del self.cache[len(self.ids) - rows :]
        self.runs.append(len(self.ids) - len(self.cache))
        self.cache.extend(self.ids[len(self.cache) :])
        ends = range(len(self.ids) - rows + 1, len(self.ids) + 1)
        return CachedLogits(tuple(tuple(self.cache[:end]) for end in ends))

    def fork(self, length: int) -> CachedSequence:
        return CachedSequence(self.runs, self.living, self.ids[:length], self.cache[:length])


@dataclass(slots=True)
class AnswerChooser:
    """Chooses by the answer that it was told of, which must be the one that stands in the context
    unless it was moved."""

    decoding: Decoding
    answer_start: int
    answer: list[int] = field(default_factory=list)
    moved: bool = False

    def choose(self, logits: Logits, row: int, ids: Sequence[int], length: int) -> Choice:
        if not isinstance(logits, CachedLogits):
            raise TypeError("logits of another model")
        answer = list(ids[self.answer_start : length])
        if not self.moved and answer != self.answer:
            raise ValueError(f"told of {self.answer}, in the context stands {answer}")
        if list(logits.contexts[row]) != list(ids[:length]):
            raise ValueError("the cache is of another context")
        chosen = next_token(logits.contexts[row], answer, self.decoding.sampling.seed)
        told = self.decoding.top_logprobs is not None
        return Choice(chosen, -0.1 if told else None)

    def advance(self, token_id: int) -> None:
        self.answer.append(token_id)

    def move(self, position: NoisePosition) -> None:  # noqa: ARG002
        self.moved = True


class CachedModel:
    tokenizer_files: tuple[TokenizerFile, ...] = ()

    def __init__(self) -> None:
        self.description = FakeModel().description
        self.runs: list[int] = []
        self._living: WeakSet[CachedSequence] = WeakSet()

    def cached_tokens(self) -> int:
        """Tokens in all caches that somebody holds."""
        return sum(len(sequence.cache) for sequence in self._living)

    def new_sequence(self) -> CachedSequence:
        return CachedSequence(self.runs, self._living)

    def new_chooser(self, decoding: Decoding, answer_start: int) -> AnswerChooser:
        return AnswerChooser(decoding, answer_start)

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> Sequence[Choice]:  # noqa: ARG002
        if not isinstance(logits, CachedLogits) or len(ids) > logits.rows:
            raise ValueError("other logits than those of the ids")
        # Tells what the row is of: the context, and what follows it.
        return [Choice(token_id, float(len(logits.contexts[n]))) for n, token_id in enumerate(ids)]
