"""Who gives up memory when there is too little: caches of ended sessions, then younger sessions.

A session that gives up its cache loses nothing but time: its ids stay, and are run again at its
next step. The oldest can always go on, so that somebody does. Used on the model's thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from uag_common.batching.job import Tenant
from uag_common.kv.pool import BlockPool

IDLE_SECONDS = 2.0
"""A session that had no pass for so long gives up its cache to any other."""


class Room:
    """The blocks of a model's caches. `reclaim` frees a cache that nobody uses, if there is one;
    `evicted` is called for each that a running session has to give up."""

    def __init__(
        self, blocks: BlockPool, reclaim: Callable[[], bool], evicted: Callable[[], None]
    ) -> None:
        self._blocks = blocks
        self._reclaim = reclaim
        self._evicted = evicted

    def free(self, blocks: int, claimant: Tenant, tenants: Iterable[Tenant], now: float) -> bool:
        """Makes so many blocks free for one of the tenants, if it can be."""
        while self._blocks.free < blocks:
            if not self._reclaim() and not self._evict(claimant, tenants, now):
                return False
        return True

    def spare(self, blocks: int) -> bool:
        """Makes so many blocks free without any session's loss, if it can be."""
        while self._blocks.free < blocks:
            if not self._reclaim():
                return False
        return True

    def _evict(self, claimant: Tenant, tenants: Iterable[Tenant], now: float) -> bool:
        others = [
            tenant
            for tenant in tenants
            if tenant.sequence is not None
            and tenant.sequence.cached
            and tenant is not claimant
            and (tenant.number > claimant.number or now - tenant.used > IDLE_SECONDS)
        ]
        if not others:
            return False
        victim = max(others, key=lambda tenant: tenant.number)
        if victim.sequence is not None:
            victim.sequence.drop_cache()
        self._evicted()
        return True
