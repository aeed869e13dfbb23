"""A model without weights: the next token is a function of the context. It counts what it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from uag_common.decoding import Choice, Decoding, NoisePosition, TokenLogprob
from uag_common.kv.pool import BlockPool
from uag_common.model import (
    Logits,
    ModelDescription,
    Part,
    Rollback,
    TokenizerFile,
    TokenRoles,
)

VOCABULARY = 50
EOS = 0
CONTEXT_LENGTH = 40
BYTES_PER_TOKEN = 100

NextToken = Callable[[Sequence[int]], int]


def count_up(context: Sequence[int]) -> int:
    """The token after n is n + 1; 9 is followed by 1, and EOS never comes."""
    return context[-1] % 9 + 1


@dataclass(frozen=True, slots=True)
class FakeLogits:
    """Nothing but their number: a `FakeChooser` looks at the context."""

    rows: int


@dataclass(slots=True)
class FakeSequence:
    """Knows, as a real one, which tokens are cached; `fed` has each forward's tokens, and `made`
    every sequence of the model."""

    made: list[FakeSequence]
    ids: list[int] = field(default_factory=list)
    cached: int = 0
    fed: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.made.append(self)

    @property
    def cache_bytes(self) -> int:
        return self.cached * BYTES_PER_TOKEN

    def truncate(self, length: int) -> None:
        del self.ids[length:]
        self.cached = min(self.cached, length)

    def extend(self, ids: Sequence[int]) -> None:
        self.ids.extend(ids)

    def pending(self, rows: int) -> int:
        if not 1 <= rows <= len(self.ids):
            raise ValueError(f"{rows} rows asked of a context of {len(self.ids)} tokens")
        return len(self.ids) - min(self.cached, len(self.ids) - rows)

    def reach(self, length: int) -> int:  # noqa: ARG002
        return 1 << 62

    def blocks_for(self, tokens: int) -> int:  # noqa: ARG002
        return 0

    def forward(self, rows: int, tokens: int | None = None) -> FakeLogits:
        """Runs so many of the pending tokens, or all."""
        pending = self.pending(rows)
        count = pending if tokens is None else tokens
        self.cached = len(self.ids) - pending
        self.fed.append(tuple(self.ids[self.cached : self.cached + count]))
        self.cached += count
        return FakeLogits(rows if count == pending else 0)

    def drop_cache(self) -> None:
        self.cached = 0

    def fork(self, length: int) -> FakeSequence:
        return FakeSequence(self.made, self.ids[:length], min(self.cached, length))


@dataclass(slots=True)
class FakeChooser:
    """`answer` has the tokens that it was told of, `position` where it was moved last."""

    next_token: NextToken
    decoding: Decoding
    answer_start: int
    answer: list[int] = field(default_factory=list)
    position: NoisePosition = field(default_factory=NoisePosition)

    def choose(self, logits: Logits, row: int, ids: Sequence[int], length: int) -> Choice:
        if not 0 <= row < logits.rows:
            raise IndexError(f"row {row} of {logits.rows}")
        return _choice(self.next_token(ids[:length]), row, self.decoding.top_logprobs)

    def advance(self, token_id: int) -> None:
        self.answer.append(token_id)

    def move(self, position: NoisePosition) -> None:
        self.position = position


class FakeModel:
    """Gives the last sequence and chooser that it made away, for a test to look into."""

    tokenizer_files: tuple[TokenizerFile, ...] = ()
    most_parts = 64

    def __init__(self, next_token: NextToken = count_up) -> None:
        self._next_token = next_token
        self.blocks = BlockPool(1000, 16)
        self.sequences: list[FakeSequence] = []
        self.choosers: list[FakeChooser] = []
        self.description = ModelDescription(
            model_id="fake",
            revision="",
            architecture="Fake",
            tokenizer_sha256="0" * 64,
            vocabulary_size=VOCABULARY,
            context_length=CONTEXT_LENGTH,
            dtype="float32",
            device="cpu",
            rollback=Rollback.TRUNCATE,
            parameter_count=0,
            weight_bytes=0,
            roles=TokenRoles((EOS,)),
        )

    @property
    def sequence(self) -> FakeSequence:
        return self.sequences[-1]

    @property
    def chooser(self) -> FakeChooser:
        return self.choosers[-1]

    def new_sequence(self) -> FakeSequence:
        return FakeSequence(self.sequences)

    def run(self, parts: Sequence[Part]) -> Sequence[FakeLogits]:
        return [_sequence(part).forward(part.rows, part.tokens) for part in parts]

    def new_chooser(self, decoding: Decoding, answer_start: int) -> FakeChooser:
        self.choosers.append(FakeChooser(self._next_token, decoding, answer_start))
        return self.choosers[-1]

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> Sequence[Choice]:
        if len(ids) > logits.rows:
            raise ValueError(f"{len(ids)} ids for {logits.rows} rows")
        return [_choice(token_id, row, top) for row, token_id in enumerate(ids)]


def _sequence(part: Part) -> FakeSequence:
    if not isinstance(part.sequence, FakeSequence):
        raise TypeError("a sequence of another model")
    return part.sequence


def _choice(token_id: int, row: int, top: int | None) -> Choice:
    """Log-probabilities fall with the row: -0.1, -0.2, and so on."""
    if top is None:
        return Choice(token_id)
    logprob = -0.1 * (row + 1)
    return Choice(token_id, logprob, (TokenLogprob(token_id, logprob),)[:top])
