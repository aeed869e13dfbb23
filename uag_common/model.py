"""What the services know of a model: its description, and what a session asks of it.

Plain values and protocols. The implementation with torch stands in `engine`; tests and emulations
bring their own. Nothing here may import torch, transformers or grpc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import Protocol

from uag_common.decoding import Choice, Decoding, NoisePosition


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
    """The logits after each of the last fed tokens, in order."""

    @property
    def rows(self) -> int:
        """How many there are."""


class TokenSequence(Protocol):
    """One session's token ids and their cache. Only the model's worker thread touches it."""

    @property
    def ids(self) -> Sequence[int]:
        """The context: every token, cached or not. Not to be changed by the caller."""

    @property
    def cache_bytes(self) -> int:
        """What the cache takes in memory."""

    def truncate(self, length: int) -> None:
        """Roll the context back to its first `length` tokens."""

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids; nothing is computed yet."""

    def forward(self, rows: int) -> Logits:
        """One forward over all tokens that are not cached yet, and over the last `rows` in any
        case: the logits after each of those. ValueError if the context has fewer, or if 0."""

    def fork(self, length: int) -> TokenSequence:
        """A sequence of its own with the first `length` tokens, those of them that are cached
        cached in it too. Later changes of one do not show in the other."""


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

    def new_sequence(self) -> TokenSequence:
        """An empty context with an empty cache."""

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
