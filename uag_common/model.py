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


class ChosenRows(Protocol):
    """What the model chose after each of the last fed tokens."""

    @property
    def ids(self) -> tuple[int, ...]:
        """One id for each row asked for, in order."""

    def logprob(self, row: int) -> float:
        """Natural logarithm of the probability of `ids[row]`."""


class TokenSequence(Protocol):
    """One session's token ids and their cache. Only the model's worker thread touches it."""

    @property
    def ids(self) -> Sequence[int]:
        """The context: every token, cached or not. Not to be changed by the caller."""

    def truncate(self, length: int) -> None:
        """Roll the context back to its first `length` tokens."""

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids; nothing is computed yet."""

    def choose(self, rows: int) -> ChosenRows:
        """One forward over all tokens that are not cached yet, and over the last `rows` in any
        case: a choice after each of those. ValueError if the context has fewer, or if 0."""


class Model(Protocol):
    """A loaded model."""

    @property
    def description(self) -> ModelDescription: ...

    @property
    def tokenizer_files(self) -> tuple[TokenizerFile, ...]: ...

    def new_sequence(self) -> TokenSequence:
        """An empty context with an empty cache."""


def tokenizer_sha256(files: Sequence[TokenizerFile]) -> str:
    """SHA-256 over names and bytes in the order of names, as the contract defines it."""
    digest = sha256()
    for file in sorted(files, key=lambda file: file.name):
        digest.update(file.name.encode())
        digest.update(file.content)
    return digest.hexdigest()
