"""The ids of a vocabulary that mean something by role. Knows no text: a role is never spelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roles:
    """Which ids end a text or mark a turn, from the configuration of the model.

    `eos` holds each id that ends a text; `primary_eos` is the one that is proposed when the other
    side ends its text (None: this model cannot end one).
    """

    eos: frozenset[int] = frozenset()
    primary_eos: int | None = None
    turn_start: int | None = None
    turn_end: int | None = None

    @classmethod
    def ending(cls, eos_ids: Sequence[int]) -> Roles:
        """Of a model whose texts end with any of these; it prefers the first."""
        return cls(eos=frozenset(eos_ids), primary_eos=eos_ids[0] if eos_ids else None)

    def ids(self) -> frozenset[int]:
        """All ids that have a role."""
        named = (self.primary_eos, self.turn_start, self.turn_end)
        return self.eos.union(token_id for token_id in named if token_id is not None)
