"""What the services know of a model: its description, and what a session asks of it.

Plain values and protocols. The implementation with torch stands in `engine`; tests and emulations
bring their own. Nothing here may import torch, transformers or grpc.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Protocol, TypeAlias, TypeVar

from uag_common.decoding import Choice, Decoding, NoisePosition
from uag_common.kv.pool import BlockPool


class Rollback(Enum):
    """How a session's cache goes back to an earlier length."""

    TRUNCATE = "truncate"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class TokenRoles:
    """Ids by role, from the model's configuration. The first EOS is the model's preferred one."""

    eos_ids: tuple[int, ...]
    bos_id: int | None = None
    pad_id: int | None = None


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """One file of a tokenizer; `name` has no folder."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a model is and can do; `uag.model.v1.ModelDescription` explains each field."""

    model_id: str
    revision: str
    architecture: str
    tokenizer_sha256: str
    vocabulary_size: int
    context_length: int
    dtype: str
    device: str
    rollback: Rollback
    parameter_count: int
    weight_bytes: int
    roles: TokenRoles


class Logits(Protocol):
    """The logits after each of the last tokens of a sequence, in order."""

    @property
    def rows(self) -> int:
        """How many there are."""


class TokenSequence(Protocol):
    """One context: its token ids and their cache. Only the model's worker thread touches it."""

    @property
    def ids(self) -> Sequence[int]:
        """The context: every token, cached or not. Not to be changed by the caller."""

    @property
    def cached(self) -> int:
        """How many of the first tokens are in the cache."""

    @property
    def cache_bytes(self) -> int:
        """What the cache takes in memory."""

    def truncate(self, length: int) -> None:
        """Roll the context back to its first `length` tokens."""

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids; nothing is computed yet."""

    def pending(self, rows: int) -> int:
        """How many tokens must run for the logits after each of the last `rows`: those that are not
        cached, and the last `rows` in any case. ValueError if the context has fewer, or if 0."""

    def reach(self, length: int) -> int:
        """The longest context whose logits can come out of the same forward as those after `length`
        tokens."""

    def blocks_for(self, tokens: int) -> int:
        """How many free blocks it takes to run so many of the pending tokens."""

    def fork(self, length: int) -> TokenSequence:
        """A sequence of its own with the first `length` tokens, those of them that are cached
        cached in it too (some less if memory is short). Later changes of one do not show in the
        other."""

    def drop_cache(self) -> None:
        """Gives back the memory of the cache; the ids stay."""


@dataclass(frozen=True, slots=True)
class Forward:
    """What a step asks of the model: the logits after each of the last `rows` tokens."""

    sequence: TokenSequence
    rows: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one forward pass runs of one sequence: the next `tokens` of those that are pending for
    the last `rows`. Logits come out if that is all of them."""

    sequence: TokenSequence
    tokens: int
    rows: int


Result = TypeVar("Result")
Step: TypeAlias = Generator[Forward, Logits, Result]
"""Work of one session on the model's thread: it yields what it needs of the model and is sent the
logits, as often as it likes. What it returns is its caller's."""


class TokenChooser(Protocol):
    """Chooses the tokens of one answer. The one place where a token is chosen, in the target and in
    the draft. It knows where in the answer the next token stands: `advance` after each."""

    def choose(self, logits: Logits, row: int, ids: Sequence[int], length: int) -> Choice:
        """The token after the first `length` of `ids`, whose logits are that row of `logits`."""

    def advance(self, token_id: int) -> None:
        """This is the next token of the answer."""

    def move(self, position: NoisePosition) -> None:
        """The next token stands there. For a chooser without a constraint: that one cannot be
        moved."""


class Model(Protocol):
    """A loaded model."""

    @property
    def description(self) -> ModelDescription: ...

    @property
    def tokenizer_files(self) -> tuple[TokenizerFile, ...]: ...

    @property
    def blocks(self) -> BlockPool:
        """What the caches of its sequences are made of."""

    @property
    def most_parts(self) -> int:
        """How many sequences one forward pass may run."""

    def new_sequence(self) -> TokenSequence:
        """An empty context with an empty cache."""

    def run(self, parts: Sequence[Part]) -> Sequence[Logits]:
        """One forward pass, on the worker's thread: of each part the logits, of 0 rows where it is
        not the last of its sequence. After an error no sequence has more cached than before. Raises
        NoBlocksError if there is no memory for them."""

    def new_chooser(self, decoding: Decoding, answer_start: int) -> TokenChooser:
        """A chooser for an answer that begins at index `answer_start` of its context. Raises
        InvalidRequestError for a constraint that cannot be compiled. May be called from any
        thread."""

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> Sequence[Choice]:
        """Of unprocessed logits, the log-probability of `ids[i]` in row i, and the `top` most
        probable tokens there."""


def tokenizer_sha256(files: Sequence[TokenizerFile]) -> str:
    """SHA-256 over names and bytes in the order of names, as the contract defines it."""
    digest = sha256()
    for file in sorted(files, key=lambda file: file.name):
        digest.update(file.name.encode())
        digest.update(file.content)
    return digest.hexdigest()


def run_alone(model: Model, sequence: TokenSequence, rows: int) -> Logits:
    """The logits after each of the last `rows` tokens of one sequence."""
    (logits,) = model.run((Part(sequence, sequence.pending(rows), rows),))
    return logits


def run_step(model: Model, step: Step[Result]) -> Result:
    """Runs a step to its end, alone; gives what it gives."""
    try:
        wanted = next(step)
        while True:
            wanted = step.send(run_alone(model, wanted.sequence, wanted.rows))
    except StopIteration as end:
        result: Result = end.value
        return result
