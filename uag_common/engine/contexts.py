"""How the contexts of a model are kept and run: the ways of the engine, behind one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from uag_common.engine.logits import TensorLogits
from uag_common.kv.pool import BlockPool
from uag_common.model import Part, Rollback, TokenSequence


class Contexts(Protocol):
    """Makes the contexts of one model, and runs parts of them."""

    @property
    def rollback(self) -> Rollback:
        """How a context goes back to an earlier length."""

    @property
    def blocks(self) -> BlockPool:
        """What the caches are made of, or are counted in."""

    @property
    def longest(self) -> int:
        """Tokens of the longest context that there is room for, if it is the only one."""

    @property
    def most_parts(self) -> int:
        """How many contexts one pass may run."""

    def new_sequence(self) -> TokenSequence:
        """An empty context with an empty cache."""

    def run(self, parts: Sequence[Part]) -> Sequence[TensorLogits]:
        """As `uag_common.model.Model.run`."""
