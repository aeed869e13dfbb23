"""Which of the processes that share a model this one is. Knows environment variables alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from uag_common.errors import StartError

STORE = "UAG_RANKS_STORE"


@dataclass(frozen=True, slots=True)
class Place:
    """Of `size` processes the one of that `rank`: 0 leads and serves, the others follow it.

    `local_rank`: its number on this machine, and that of its accelerator. `store`: a file by which
    they find each other; None: they do it as torchrun's variables say.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    store: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Place:
        """As torchrun tells it, or a leader. Raises StartError."""
        size = _number(environ, "WORLD_SIZE", 1)
        if size <= 1:
            return cls()
        store = environ.get(STORE)
        return cls(
            _number(environ, "RANK"),
            size,
            _number(environ, "LOCAL_RANK"),
            None if store is None else Path(store),
        )

    def environment(self) -> dict[str, str]:
        """What `of` reads."""
        named = {"RANK": self.rank, "WORLD_SIZE": self.size, "LOCAL_RANK": self.local_rank}
        written = {name: str(number) for name, number in named.items()}
        return written if self.store is None else {**written, STORE: str(self.store)}

    def others(self) -> Iterator[Place]:
        """Those of the other processes, where all are on one machine."""
        for rank in range(self.size):
            if rank != self.rank:
                yield replace(self, rank=rank, local_rank=rank)

    @property
    def name(self) -> str:
        """For people."""
        return f"rank {self.rank} of {self.size}"


SINGLE = Place()


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isdecimal():
        raise StartError(f"{name}={text or ''}: must be a number as torchrun sets it")
    return int(text)
