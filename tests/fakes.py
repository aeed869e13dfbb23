"""A model without weights: the next token is a function of the context. It counts what it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from uag_common.model import ModelDescription, Rollback, TokenizerFile, TokenRoles

VOCABULARY = 50
EOS = 0
CONTEXT_LENGTH = 40

NextToken = Callable[[Sequence[int]], int]


def count_up(context: Sequence[int]) -> int:
    """The token after n is n + 1; 9 is followed by 1, and EOS never comes."""
    return context[-1] % 9 + 1


@dataclass(frozen=True, slots=True)
class FakeRows:
    ids: tuple[int, ...]

    def logprob(self, row: int) -> float:
        return -0.1 * (row + 1)


@dataclass(slots=True)
class FakeSequence:
    """Knows, as a real one, which tokens are cached; `fed` has each forward's tokens."""

    next_token: NextToken
    ids: list[int] = field(default_factory=list)
    cached: int = 0
    fed: list[tuple[int, ...]] = field(default_factory=list)

    def truncate(self, length: int) -> None:
        del self.ids[length:]
        self.cached = min(self.cached, length)

    def extend(self, ids: Sequence[int]) -> None:
        self.ids.extend(ids)

    def choose(self, rows: int) -> FakeRows:
        self.cached = min(self.cached, len(self.ids) - rows)
        self.fed.append(tuple(self.ids[self.cached :]))
        self.cached = len(self.ids)
        ends = range(len(self.ids) - rows + 1, len(self.ids) + 1)
        return FakeRows(tuple(self.next_token(self.ids[:end]) for end in ends))


class FakeModel:
    """Gives the last sequence that it made away, for a test to look into."""

    tokenizer_files: tuple[TokenizerFile, ...] = ()

    def __init__(self, next_token: NextToken = count_up) -> None:
        self._next_token = next_token
        self.sequence = FakeSequence(next_token)
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

    def new_sequence(self) -> FakeSequence:
        self.sequence = FakeSequence(self._next_token)
        return self.sequence
