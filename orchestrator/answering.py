"""Answers requests with the pair of models that is there: sets up the round loop of each.

Knows the two peers and how to open their sessions; the loop itself knows neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from orchestrator.draft_client import DraftClient
from orchestrator.drafter import Drafter, DraftPlan, ModelDrafter, NoDrafter
from orchestrator.events import Degraded, Event, Started
from orchestrator.peer import ModelPeer
from orchestrator.request import AnswerRequest, ChatPrompt
from orchestrator.round_loop import AnswerLimits, RoundLoop
from orchestrator.settings import OrchestratorSettings
from orchestrator.side import Side, open_conversion
from orchestrator.tally import Tally
from orchestrator.text_stream import TextStream
from orchestrator.verify_client import VerifyClient
from uag_common.errors import InvalidRequestError, PeerUnavailableError, PromptTooLongError


class Answering:
    """One draft service, one verify service, and the server's own settings."""

    def __init__(self, settings: OrchestratorSettings, draft: ModelPeer, verify: ModelPeer) -> None:
        self._settings = settings
        self._draft = draft
        self._verify = verify

    async def answer(self, request: AnswerRequest) -> AsyncGenerator[Event, None]:
        """Raises InvalidRequestError or PromptTooLongError before any model runs, and
        PeerUnavailableError if there is no target."""
        tally = Tally()
        request.check()
        target = self._target()
        target.check_size(request.prompt)
        prompt_ids = await asyncio.to_thread(target.encode, request.prompt)
        limits = self._limits(request, target, len(prompt_ids))
        draft_tokens = self._draft_tokens(request)
        drafter = await self._drafter(request, target, prompt_ids, draft_tokens, tally)
        text = TextStream(target.vocabulary, at_text_start=isinstance(request.prompt, ChatPrompt))
        yield self._started(target, len(prompt_ids), limits.max_new_tokens, draft_tokens)
        loop = RoundLoop(prompt_ids, limits, self._verify_session(target), drafter, text, tally)
        async with aclosing(loop.run()) as events:
            async for event in events:
                yield event

    def _target(self) -> Side:
        if self._verify.side is None:
            raise PeerUnavailableError(self._verify.reason)
        return self._verify.side

    def _limits(self, request: AnswerRequest, target: Side, prompt_tokens: int) -> AnswerLimits:
        context_length = target.description.context_length
        if not prompt_tokens:
            raise InvalidRequestError("prompt", "has no tokens in the target's vocabulary")
        if prompt_tokens >= context_length:
            raise PromptTooLongError(
                f"the prompt has {prompt_tokens} tokens; the target's context holds "
                f"{context_length}, and one must be left for the answer"
            )
        wanted = request.max_new_tokens
        if wanted is not None and wanted > context_length:
            raise InvalidRequestError(
                "max_new_tokens", f"is {wanted}, the target's context holds {context_length}"
            )
        return AnswerLimits(
            max_new_tokens=self._settings.max_new_tokens if wanted is None else wanted,
            context_length=context_length,
            eos_ids=frozenset(target.description.roles.eos_ids),
        )

    def _draft_tokens(self, request: AnswerRequest) -> int:
        wanted = request.draft_tokens
        return self._settings.draft_tokens if wanted is None else wanted

    async def _drafter(
        self,
        request: AnswerRequest,
        target: Side,
        prompt_ids: tuple[int, ...],
        draft_tokens: int,
        tally: Tally,
    ) -> Drafter:
        draft = self._draft.side
        if not draft_tokens:
            return NoDrafter()
        if draft is None:
            return NoDrafter(Degraded(self._draft.reason, since_round=0))
        conversion = await asyncio.to_thread(
            open_conversion, target, draft, request.prompt, prompt_ids
        )
        plan = DraftPlan(draft_tokens, draft.description.context_length)
        return ModelDrafter(plan, conversion, lambda: self._draft_session(draft), tally)

    def _draft_session(self, draft: Side) -> DraftClient:
        return DraftClient(
            f"draft service at {self._draft.address}",
            self._draft.channel,
            draft.description,
            self._settings.draft_timeout_seconds,
        )

    def _verify_session(self, target: Side) -> VerifyClient:
        return VerifyClient(
            f"verify service at {self._verify.address}",
            self._verify.channel,
            target.description,
            self._settings.verify_timeout_seconds,
        )

    def _started(
        self, target: Side, prompt_tokens: int, max_new_tokens: int, draft_tokens: int
    ) -> Started:
        draft = self._draft.side
        return Started(
            prompt_tokens=prompt_tokens,
            max_new_tokens=max_new_tokens,
            draft_tokens=draft_tokens,
            target_model_id=target.description.model_id,
            draft_model_id=draft.description.model_id if draft is not None else "",
        )
