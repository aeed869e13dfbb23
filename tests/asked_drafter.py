"""A model drafter that is asked for the same number of tokens in each round."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.draft_context import DraftContext
from orchestrator.model_drafter import ModelDrafter, Wanted
from orchestrator.sessions import DraftPort
from tests.unseen import unseen_observation


class AskedDrafter(ModelDrafter):
    """Its candidates alone are told."""

    def __init__(
        self,
        tokens: int,
        context: DraftContext,
        open_session: Callable[[], DraftPort],
        *,
        wait: bool,
    ) -> None:
        self.observation = unseen_observation()
        self._tokens = tokens
        super().__init__(context, open_session, self.observation, wait=wait)

    async def propose(self, round_number: int, room: int) -> tuple[int, ...]:
        return (await self.draft(round_number, Wanted(self._tokens, room))).ids
