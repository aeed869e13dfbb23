"""Who gives up memory when there is too little: caches of ended sessions, then younger sessions.

A session that gives up its cache loses nothing but time: its ids stay, and are run again at its
next step. The oldest can always go on, so that somebody does. Used on the model's thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from uag_common.batching.job import Tenant
from uag_common.kv.pool import BlockPool

IDLE_SECONDS = 2.0
"""A session that wants no pass, and had none for so long, gives up its cache to any other."""


@dataclass(frozen=True, slots=True)
class Tenants:
    """All sessions, and those with a step that waits or runs, `now` (in `time.perf_counter`)."""

    all: Collection[Tenant]
    busy: Collection[Tenant]
    now: float

    def is_idle(self, tenant: Tenant) -> bool:
        return tenant not in self.busy and self.now - tenant.used > IDLE_SECONDS

    def victim(self, claimant: Tenant) -> Tenant | None:
        """Who has to give up its cache to the claimant: one that is idle, else the youngest."""
        others = (
            tenant
            for tenant in self.all
            if tenant is not claimant
            and tenant.sequence is not None
            and tenant.sequence.cached
            and (tenant.number > claimant.number or self.is_idle(tenant))
        )
        return max(others, key=lambda one: (self.is_idle(one), one.number), default=None)


class Room:
    """The blocks of a model's caches. `reclaim` frees a cache that nobody uses, if there is one;
    `evicted` is called for each that a running session has to give up."""

    def __init__(
        self, blocks: BlockPool, reclaim: Callable[[], bool], evicted: Callable[[], None]
    ) -> None:
        self._blocks = blocks
        self._reclaim = reclaim
        self._evicted = evicted

    def free(self, blocks: int, claimant: Tenant, tenants: Tenants) -> bool:
        """Makes so many blocks free for one of the tenants, if it can be."""
        while self._blocks.free < blocks:
            if not self._reclaim() and not self._evict(claimant, tenants):
                return False
        return True

    def spare(self, blocks: int) -> bool:
        """Makes so many blocks free without any session's loss, if it can be."""
        while self._blocks.free < blocks:
            if not self._reclaim():
                return False
        return True

    def _evict(self, claimant: Tenant, tenants: Tenants) -> bool:
        victim = tenants.victim(claimant)
        if victim is None or victim.sequence is None:
            return False
        victim.sequence.drop_cache()
        self._evicted()
        return True
