"""How the answers of one request are written: builds the round loop of each, with its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from orchestrator.answer_end import AnswerEnd
from orchestrator.conversion.conversion import Conversion
from orchestrator.draft_client import DraftOptions
from orchestrator.draft_context import DraftContext
from orchestrator.drafter import Drafter, DraftPlan, ModelDrafter, NoDrafter
from orchestrator.observation import Observation
from orchestrator.pair import Pair
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
        self._conversions: Sequence[Conversion] = ()

    @property
    def target_model_id(self) -> str:
        return self.target.description.model_id

    @property
    def draft_model_id(self) -> str:
        """Empty while there is no draft."""
        return "" if self.draft is None else self.draft.description.model_id

    async def prepare_drafts(self, preparation: Preparation) -> None:
        """Encodes the prompt for the draft. Raises PeerUnavailableError if there must be a draft
        and is none, OverloadedError if there is no room for it now."""
        if not self.resolved.draft_tokens:
            return
        if self.draft is None:
            if self._draft_must_live:
                raise PeerUnavailableError(self._pair.draft_reason)
            return
        self._conversions = await preparation.open_conversions(
            self.target, self.draft, self.prompt, self.resolved.n
        )

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
            drafter=self._drafter(choice, observation),
            text=self._text(),
            observation=observation,
            end=self._end,
            spell=self.target.spell,
        )

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

    def _drafter(self, choice: int, observation: Observation) -> Drafter:
        if not self.resolved.draft_tokens:
            return NoDrafter()
        if self.draft is None:
            return NoDrafter(self._pair.draft_reason)
        speculation = self.resolved.request.speculation
        options = DraftOptions(
            sampling=self.resolved.draft_sampling(choice),
            min_probability=speculation.min_probability,
            prefix=self.resolved.prefix,
            priority=self.resolved.request.priority,
        )
        plan = DraftPlan(
            tokens=self.resolved.draft_tokens, wait=speculation.mode is SpeculationMode.FORCE
        )
        context = DraftContext(
            self._conversions[choice],
            self.draft.vocabulary,
            self.draft.description.context_length,
            self.draft.encoder.start_ids(),
        )
        open_session = partial(self._pair.draft_session, self.draft, options)
        return ModelDrafter(plan, context, open_session, observation)

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
