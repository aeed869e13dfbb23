"""A model without weights whose logits come from its cache, so that a stale cache shows. The next
token is a function of the whole context, and of where in the answer it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from tests.fakes import FakeModel
from uag_common.decoding import Choice, Decoding, NoisePosition
from uag_common.kv.pool import BlockPool
from uag_common.kv.table import BlockTable
from uag_common.model import Logits, Part, TokenizerFile

IDS = 4
"""So few that guesses are right now and then; 0 is the EOS."""
BLOCK_TOKENS = 2
BYTES_PER_TOKEN = 100


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


class CachedSequence:
    """What it has cached lies in blocks of the model's pool."""

    def __init__(self, model: CachedModel, ids: Sequence[int] = ()) -> None:
        self._model = model
        self.ids = list(ids)
        self.cache: list[int] = []
        self._table = BlockTable(model.blocks)

    @property
    def cached(self) -> int:
        return len(self.cache)

    @property
    def cache_bytes(self) -> int:
        return BYTES_PER_TOKEN * len(self.cache)

    def truncate(self, length: int) -> None:
        del self.ids[length:]
        self._uncache(length)

    def _uncache(self, length: int) -> None:
        del self.cache[length:]
        self._table.truncate(length)

    def extend(self, ids: Sequence[int]) -> None:
        self.ids.extend(ids)

    def pending(self, rows: int) -> int:
        if not 1 <= rows <= len(self.ids):
            raise ValueError(f"{rows} rows asked of a context of {len(self.ids)} tokens")
        return len(self.ids) - min(len(self.cache), len(self.ids) - rows)

    def reach(self, length: int) -> int:  # noqa: ARG002
        return 1 << 62

    def blocks_for(self, tokens: int) -> int:
        return self._table.needed(tokens)

    def run(self, part: Part) -> CachedLogits:
        whole = part.tokens == self.pending(part.rows)
        self._uncache(len(self.ids) - part.rows)
        self._table.grow(part.tokens)
        self._table.fill(part.tokens)
        self._model.runs.append(part.tokens)
        self.cache += self.ids[len(self.cache) : len(self.cache) + part.tokens]
        ends = range(len(self.ids) - part.rows + 1, len(self.ids) + 1) if whole else ()
        return CachedLogits(tuple(tuple(self.cache[:end]) for end in ends))

    def fork(self, length: int) -> CachedSequence:
        other = CachedSequence(self._model, self.ids[:length])
        other._table, _ = self._table.fork(length)
        other.cache = self.cache[: other._table.tokens]
        return other

    def drop_cache(self) -> None:
        self._uncache(0)


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
    """`runs` has how many tokens each part of a pass ran, and `passes` how many parts it had."""

    tokenizer_files: tuple[TokenizerFile, ...] = ()

    def __init__(self, blocks: int = 1000, most_parts: int = 64) -> None:
        self.description = FakeModel().description
        self.blocks = BlockPool(blocks, BLOCK_TOKENS, BLOCK_TOKENS * BYTES_PER_TOKEN)
        self.most_parts = most_parts
        self.runs: list[int] = []
        self.passes: list[int] = []

    def new_sequence(self) -> CachedSequence:
        return CachedSequence(self)

    def run(self, parts: Sequence[Part]) -> Sequence[CachedLogits]:
        self.passes.append(len(parts))
        return [_sequence(part).run(part) for part in parts]

    def new_chooser(self, decoding: Decoding, answer_start: int) -> AnswerChooser:
        return AnswerChooser(decoding, answer_start)

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> Sequence[Choice]:  # noqa: ARG002
        if not isinstance(logits, CachedLogits) or len(ids) > logits.rows:
            raise ValueError("other logits than those of the ids")
        # Tells what the row is of: the context, and what follows it.
        return [Choice(token_id, float(len(logits.contexts[n]))) for n, token_id in enumerate(ids)]


def _sequence(part: Part) -> CachedSequence:
    if not isinstance(part.sequence, CachedSequence):
        raise TypeError("a sequence of another model")
    return part.sequence
