"""How the answers of one request are written: builds the round loop of each, with its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from orchestrator.answer_end import AnswerEnd
from orchestrator.conversion.conversion import Conversion
from orchestrator.draft_client import DraftOptions
from orchestrator.draft_context import DraftContext
from orchestrator.drafter import Drafter, NoDrafter
from orchestrator.forced_drafter import ForcedDrafter
from orchestrator.model_drafter import ModelDrafter
from orchestrator.observation import Observation
from orchestrator.pair import Pair
from orchestrator.planned_drafter import Bounds, PlannedDrafter
from orchestrator.preparation import Preparation
from orchestrator.request import ChatPrompt, DraftFailurePolicy, SpeculationMode
from orchestrator.resolving import Resolved
from orchestrator.round_loop import AnswerLimits, RoundLoop
from orchestrator.side import EncodedPrompt, Side
from orchestrator.stopping import AnswerText, Stopping
from orchestrator.text_stream import TextStream
from orchestrator.verify_client import VerifyOptions
from uag_common.errors import PeerUnavailableError


class AnswerPlan:
    """Of one request, with the models that were there when it began."""

    def __init__(
        self,
        pair: Pair,
        resolved: Resolved,
        target: Side,
        prompt: EncodedPrompt,
        preparation: Preparation,
        observations: Sequence[Observation],
        end: AnswerEnd,
    ) -> None:
        """`observations`: one for each answer."""
        self.resolved = resolved
        self.target = target
        self.draft = pair.draft
        self.prompt = prompt
        self._pair = pair
        self._end = end
        self._observations = observations
        self._preparation = preparation
        self._conversions: asyncio.Future[tuple[Conversion, ...]] | None = None
        self._forced_models: tuple[ModelDrafter, ...] = ()

    @property
    def target_model_id(self) -> str:
        return self.target.description.model_id

    @property
    def draft_model_id(self) -> str:
        """Empty while there is no draft."""
        return "" if self.draft is None else self.draft.description.model_id

    async def prepare(self) -> None:
        """Encodes the prompt for a draft that rounds wait for. Raises PeerUnavailableError if there
        must be a draft and is none, OverloadedError if there is no room for it now."""
        if not self.resolved.draft_tokens:
            return
        if self.draft is None:
            if self._draft_must_live:
                raise PeerUnavailableError(self._pair.draft_reason)
            return
        if self._forced:
            numbered = enumerate(self._observations)
            self._forced_models = tuple([await self._model(*each) for each in numbered])

    async def _conversion(self, choice: int) -> Conversion:
        """The prompt is encoded once for all answers, when the first of them needs it."""
        if self._conversions is None:
            if self.draft is None:
                raise PeerUnavailableError(self._pair.draft_reason)
            self._conversions = asyncio.ensure_future(
                self._preparation.open_conversions(
                    self.target, self.draft, self.prompt, self.resolved.n
                )
            )
        return (await asyncio.shield(self._conversions))[choice]

    def loop(self, choice: int) -> RoundLoop:
        """The answer with that index; its sessions open when it runs."""
        observation = self._observations[choice]
        limits = AnswerLimits(
            max_new_tokens=self.resolved.max_new_tokens,
            context_length=self.target.description.context_length,
            draft_must_live=self._draft_must_live,
        )
        return RoundLoop(
            choice=choice,
            prompt_ids=self.prompt.ids,
            limits=limits,
            verify=self._pair.verify_session(self.target, self._verify_options(choice)),
            drafter=self._drafter(choice),
            text=self._text(),
            observation=observation,
            end=self._end,
            spell=self.target.spell,
        )

    @property
    def _forced(self) -> bool:
        return self.resolved.request.speculation.mode is SpeculationMode.FORCE

    @property
    def _draft_must_live(self) -> bool:
        return self.resolved.request.speculation.on_draft_failure is DraftFailurePolicy.FAIL

    def _verify_options(self, choice: int) -> VerifyOptions:
        request = self.resolved.request
        return VerifyOptions(
            decoding=self.resolved.decoding(choice),
            # They are the same for all answers.
            prompt_top_logprobs=None if choice else request.logprobs.prompt_top,
            prefix=self.resolved.prefix,
            priority=request.priority,
        )

    def _drafter(self, choice: int) -> Drafter:
        observation, speculation = self._observations[choice], self.resolved.request.speculation
        if self._forced:
            return self._forced_drafter(choice)
        bounds = Bounds(
            draft_tokens=self.resolved.draft_tokens,
            lookup_tokens=self.resolved.lookup_tokens,
            min_probability=speculation.min_probability,
            run_ahead=self._pair.may_run_ahead,
        )
        wanted = bounds.draft_tokens > 0
        if not wanted and not bounds.lookup_tokens:
            return NoDrafter()
        return PlannedDrafter(
            self.prompt.ids,
            bounds,
            self._pair.figures(self.target, self.draft),
            partial(self._model, choice, observation) if wanted and self.draft else None,
            observation,
            self._pair.draft_reason if wanted and self.draft is None else None,
            self._pair.memory(self.target, self.resolved.prefix.key),
        )

    def _forced_drafter(self, choice: int) -> Drafter:
        if not self._forced_models:
            return NoDrafter(self._pair.draft_reason)
        least = self.resolved.request.speculation.min_probability
        return ForcedDrafter(self._forced_models[choice], self.resolved.draft_tokens, least)

    async def _model(self, choice: int, observation: Observation) -> ModelDrafter:
        conversion, draft = await self._conversion(choice), self.draft
        if draft is None:
            raise PeerUnavailableError(self._pair.draft_reason)
        options = DraftOptions(
            sampling=self.resolved.draft_sampling(choice),
            prefix=self.resolved.prefix,
            priority=self.resolved.request.priority,
        )
        context = DraftContext(
            conversion,
            draft.vocabulary,
            draft.description.context_length,
            draft.encoder.start_ids(),
        )
        open_session = partial(self._pair.draft_session, draft, options)
        return ModelDrafter(context, open_session, observation, wait=self._forced)

    def _text(self) -> AnswerText:
        wanted = self.resolved.request.stopping
        stopping = Stopping(
            eos_ids=self.resolved.eos_ids,
            stop_token_ids=frozenset(wanted.stop_token_ids),
            sequences=wanted.stop_sequences,
            include_stop=wanted.include_stop,
            min_new_tokens=wanted.min_new_tokens or 0,
        )
        at_start = isinstance(self.resolved.request.prompt, ChatPrompt)
        return AnswerText(TextStream(self.target.vocabulary, at_text_start=at_start), stopping)
