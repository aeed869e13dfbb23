"""One draft session: its steps go to the model's worker one by one, so that sessions take turns
and a session that is gone stops within a step. No grpc, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from draft_service.drafter import CausalDrafter, DraftToken, ProposalEnd, ProposeCommand
from uag_common.model import Model
from uag_common.worker import StepTime, Worker


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was drafted, why it ended, and what it took."""

    tokens: tuple[DraftToken, ...]
    end: ProposalEnd
    time: StepTime


class DraftSession:
    """Lives as long as its stream."""

    def __init__(self, model: Model, worker: Worker) -> None:
        self._drafter = CausalDrafter(model)
        self._worker = worker

    async def open(self, context_ids: Sequence[int]) -> StepTime:
        self._drafter.check_open(context_ids)
        return (await self._worker.run(lambda: self._drafter.open(context_ids))).time

    async def propose(self, command: ProposeCommand) -> Proposal:
        self._drafter.check_propose(command)
        self._drafter.begin(command)
        tokens: list[DraftToken] = []
        end, time = ProposalEnd.LENGTH, StepTime()
        while len(tokens) < command.max_tokens:
            step = await self._worker.run(lambda: self._drafter.step(command.min_probability))
            time += step.time
            if isinstance(step.value, ProposalEnd):
                end = step.value
                break
            tokens.append(step.value)
            if self._drafter.ends(step.value):
                end = ProposalEnd.EOS
                break
        return Proposal(tuple(tokens), end, time)
