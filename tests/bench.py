"""What the sessions of a service share, without the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from uag_common.batching.batcher import Batcher
from uag_common.batching.timing import Pass
from uag_common.model import Model
from uag_common.prefix_cache import PrefixCache
from uag_common.worker import Worker


class Seen:
    """An observer that keeps all that it is told."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Sequence[Pass]]] = []
        self.drops: list[str] = []
        self.passes: list[tuple[int, int]] = []
        self.evictions = 0

    def stepped(self, command: str, passes: Sequence[Pass]) -> None:
        self.steps.append((command, passes))

    def dropped(self, command: str, queued: float) -> None:  # noqa: ARG002
        self.drops.append(command)

    def passed(self, sessions: int, tokens: int, seconds: float) -> None:
        assert seconds >= 0
        self.passes.append((sessions, tokens))

    def evicted(self) -> None:
        self.evictions += 1


class Bench:
    """A model, its thread, and what its sessions share."""

    def __init__(self, model: Model, max_bytes: int = 10**6) -> None:
        self.model = model
        self.prefixes = PrefixCache(max_bytes)
        self.worker = Worker("test")
        self.seen = Seen()
        self.batcher = Batcher(self.worker, model, self.prefixes.drop_one, self.seen)

    async def rest(self) -> None:
        """Until all that was asked of the thread is done."""
        await self.worker.run(lambda: None)


@asynccontextmanager
async def bench(model: Model, max_bytes: int = 10**6) -> AsyncIterator[Bench]:
    """Ends its thread when the block is left."""
    made = Bench(model, max_bytes)
    try:
        yield made
    finally:
        made.worker.close()
