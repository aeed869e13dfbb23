"""Drafts by the model in every round that has room for it, whether it pays or not. No grpc."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.drafter import Guess, Verdict
from orchestrator.events import Degraded
from orchestrator.model_drafter import ModelDrafter, Wanted


class ForcedDrafter:
    """Of one answer."""

    def __init__(self, model: ModelDrafter, tokens: int, min_probability: float | None) -> None:
        self._model = model
        self._tokens = tokens
        self._min_probability = min_probability

    @property
    def degraded(self) -> Degraded | None:
        return self._model.degraded

    def start(self) -> None:
        self._model.start()

    async def propose(self, round_number: int, room: int) -> Guess:
        wanted = Wanted(self._tokens, room, self._min_probability)
        return Guess((await self._model.draft(round_number, wanted)).ids)

    def learn(self, verdict: Verdict) -> None: ...

    def commit(self, ids: Sequence[int]) -> None:
        self._model.commit(ids)

    def close(self) -> None:
        self._model.close()
