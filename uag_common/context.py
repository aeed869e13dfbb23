"""The version of a context: names a row of token ids without sending it. Plain values only."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from uag_common.errors import StaleContextError

HASHED_IDS = 32
"""Ids at the end of a context that its hash covers: enough to tell two branches of a text apart."""


@dataclass(frozen=True, slots=True)
class ContextVersion:
    """Length in tokens and hash of the last ids, as `uag.model.v1.ContextVersion` defines it."""

    length: int
    hash: int

    @classmethod
    def of(cls, ids: Sequence[int], length: int) -> ContextVersion:
        """The version of the first `length` of `ids`."""
        tail = ids[max(0, length - HASHED_IDS) : length]
        digest = blake2b(struct.pack(f"<{len(tail)}I", *tail), digest_size=8).digest()
        return cls(length, int.from_bytes(digest, "little"))

    def check_prefix(self, ids: Sequence[int]) -> None:
        """Raises StaleContextError unless the first `length` of `ids` are the context meant."""
        if self.length > len(ids):
            raise _stale(f"{self.length} tokens, the session holds {len(ids)}")
        if ContextVersion.of(ids, self.length) != self:
            raise _stale(f"other {self.length} tokens than the session holds")

    def check_whole(self, ids: Sequence[int]) -> None:
        """Raises StaleContextError unless `ids` are, all of them, the context meant."""
        if self.length != len(ids):
            raise _stale(f"{self.length} tokens, the session holds {len(ids)}")
        self.check_prefix(ids)


def _stale(meant: str) -> StaleContextError:
    return StaleContextError(
        f"the command was meant for {meant}; open a new session with the whole context"
    )
