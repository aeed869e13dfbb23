"""A proposal that is still being drafted: its tokens as they come. No grpc."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from uag_common.batching.timing import StepTime
from uag_common.errors import UagError


class RunningDraft:
    """Filled by the client of the draft service, read by the drafter."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.probabilities: list[float] = []
        self.time: StepTime | None = None
        """What it took; None until it has ended."""
        self.error: UagError | None = None
        self._changed = asyncio.Event()

    @property
    def ended(self) -> bool:
        """No more tokens come."""
        return self.time is not None or self.error is not None

    def add(self, ids: Sequence[int], probabilities: Sequence[float]) -> None:
        """So many more."""
        self.ids.extend(ids)
        self.probabilities.extend(probabilities)
        self._changed.set()

    def end(self, time: StepTime) -> None:
        """There will be no more."""
        self.time = time
        self._changed.set()

    def fail(self, error: UagError) -> None:
        """The session is over."""
        self.error = error
        self._changed.set()

    async def more(self) -> None:
        """Until there are more tokens than there were, or no more can come."""
        await self._changed.wait()
        if not self.ended:
            self._changed.clear()
