"""The life of an answer: prefill, then rounds of propose, verify, commit. No grpc, no torch.

The one truth is `context`: prompt and committed target ids. Everything else follows from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass

from orchestrator.answer_end import AnswerEnd, AnswerOverError
from orchestrator.drafter import NO_GUESS, Drafter, Guess, Verdict
from orchestrator.events import (
    CommittedToken,
    Delta,
    Finished,
    FinishReason,
    Prefilled,
    PromptToken,
    TokenSource,
    TopToken,
    Usage,
)
from orchestrator.observation import Observation
from orchestrator.sessions import Chosen, VerifyPort
from orchestrator.stopping import AnswerText, EosStop, SequenceStop, Stop, TokenStop
from uag_common.abandon import abandon
from uag_common.context import ContextVersion
from uag_common.decoding import Choice
from uag_common.errors import PeerUnavailableError
from uag_common.limits import MAX_CANDIDATES

Spell = Callable[[int], str]
"""The text of an id by itself."""

_STOP_REASONS: Mapping[type[Stop], FinishReason] = {
    EosStop: FinishReason.EOS,
    TokenStop: FinishReason.STOP_TOKEN,
    SequenceStop: FinishReason.STOP_SEQUENCE,
}


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Where an answer must end, and whether it may go on when drafting fails."""

    max_new_tokens: int
    context_length: int
    draft_must_live: bool = False


@dataclass(frozen=True, slots=True)
class _Held:
    """A committed token whose text is not final yet."""

    choice: Choice
    source: TokenSource
    round: int
    position: int


class RoundLoop:
    """One answer, the one with index `choice` among those of its request."""

    def __init__(
        self,
        choice: int,
        prompt_ids: Sequence[int],
        limits: AnswerLimits,
        verify: VerifyPort,
        drafter: Drafter,
        text: AnswerText,
        observation: Observation,
        end: AnswerEnd,
        spell: Spell,
    ) -> None:
        self._choice = choice
        self._context = list(prompt_ids)
        self._prompt_tokens = len(prompt_ids)
        self._limits = limits
        self._verify = verify
        self._drafter = drafter
        self._text = text
        self._observation = observation
        self._end = end
        self._spell = spell
        self._cached_tokens = 0
        self._held: list[_Held] = []
        self._finish: FinishReason | None = None
        self._stop: Stop | None = None

    async def run(self) -> AsyncGenerator[Prefilled | Delta | Finished, None]:
        """`Prefilled` first, `Finished` last. Raises the UagError of the target if it is lost; a
        lost draft ends nothing unless it must live."""
        try:
            # It counts what it left behind, which the figures of the answer must have too.
            with closing(self._drafter):
                with self._observation.prefill():
                    prefilled, first = await self._prefill()
                yield prefilled
                if first is not None:
                    self._commit(0, NO_GUESS, first)
                round_number = 0
                while self._finish is None:
                    round_number += 1
                    released = self._released()
                    async with self._beside(round_number):
                        for delta in released:
                            yield delta
            self._text.finish()
            for delta in self._released():
                yield delta
            yield self._finished(self._finish)
        finally:
            self._observation.ended(self._finish, self._drafter.degraded)
            self._verify.close()

    async def _prefill(self) -> tuple[Prefilled, Chosen | None]:
        self._drafter.start()
        try:
            async with self._end.bounding():
                opened = await self._verify.open(tuple(self._context))
        except AnswerOverError as over:
            self._finish = over.reason
            return Prefilled(0, ()), None
        self._observation.prefilled(self._prompt_tokens, opened)
        self._cached_tokens = opened.cached_tokens
        chosen = Chosen((), opened.first, opened.time)
        prompt = tuple(
            PromptToken(token.id, token.logprob or 0.0, self._top(token)) for token in opened.prompt
        )
        return Prefilled(opened.cached_tokens, prompt), chosen

    @asynccontextmanager
    async def _beside(self, round_number: int) -> AsyncIterator[None]:
        """Runs a round while the block is in hand: what is said goes out while the target computes
        what comes next, so that no client's pace is added to the target's."""
        running = asyncio.create_task(self._observed_round(round_number))
        try:
            # It gets as far as to have asked the target.
            await asyncio.sleep(0)
            yield
            await running
        finally:
            abandon(running)

    async def _observed_round(self, round_number: int) -> None:
        with self._observation.round(round_number):
            await self._round(round_number)

    async def _round(self, round_number: int) -> None:
        try:
            async with self._end.bounding():
                guess = await self._drafter.propose(round_number, self._room())
                self._check_draft()
                version = ContextVersion.of(self._context, len(self._context))
                chosen = await self._verify.verify(round_number, version, guess.ids)
        except AnswerOverError as over:
            self._finish = over.reason
            return
        self._drafter.learn(Verdict(len(guess.ids), len(chosen.accepted), chosen.time))
        committed, accepted = self._commit(round_number, guess, chosen)
        self._observation.verified(guess, accepted, committed, chosen.time)

    def _check_draft(self) -> None:
        degraded = self._drafter.degraded
        if degraded is not None and self._limits.draft_must_live:
            raise PeerUnavailableError(f"drafting failed: {degraded.reason}")

    def _room(self) -> int:
        """Most candidates that a round can use: one token more is committed than is accepted."""
        answered = len(self._context) - self._prompt_tokens
        left = min(
            self._limits.max_new_tokens - answered,
            self._limits.context_length - len(self._context),
        )
        return min(left - 1, MAX_CANDIDATES)

    def _commit(self, round_number: int, guess: Guess, chosen: Chosen) -> tuple[int, int]:
        """Takes the block up to where the answer ends inside it: how many tokens that are, and how
        many of them were candidates."""
        block = _block(guess, chosen)
        for position, (choice, source) in enumerate(block):
            self._context.append(choice.id)
            self._held.append(_Held(choice, source, round_number, position))
            self._finish = self._reason(choice.id)
            if self._finish is not None:
                break
        taken = block[: position + 1]
        if self._finish is None:
            self._drafter.commit([choice.id for choice, _ in taken])
        return len(taken), min(len(taken), len(chosen.accepted))

    def _reason(self, token_id: int) -> FinishReason | None:
        self._stop = self._text.push(token_id)
        if self._stop is not None:
            return _STOP_REASONS[type(self._stop)]
        if len(self._context) - self._prompt_tokens >= self._limits.max_new_tokens:
            return FinishReason.MAX_TOKENS
        if len(self._context) >= self._limits.context_length:
            return FinishReason.CONTEXT_LIMIT
        return None

    def _released(self) -> Sequence[Delta]:
        """The tokens whose text is final by now: one delta, or none."""
        texts = self._text.release()
        if not texts:
            return ()
        tokens = tuple(
            CommittedToken(
                id=held.choice.id,
                source=held.source,
                round=held.round,
                position=held.position,
                text=text,
                logprob=held.choice.logprob,
                top=self._top(held.choice),
            )
            for held, text in zip(self._held, texts, strict=False)
        )
        del self._held[: len(texts)]
        return (Delta(self._choice, tokens),)

    def _top(self, choice: Choice) -> tuple[TopToken, ...]:
        return tuple(TopToken(item.id, item.logprob, self._spell(item.id)) for item in choice.top)

    def _finished(self, reason: FinishReason) -> Finished:
        usage = Usage(
            prompt_tokens=self._prompt_tokens,
            completion_tokens=len(self._context) - self._prompt_tokens,
            cached_tokens=self._cached_tokens,
        )
        return Finished(
            choice=self._choice,
            reason=reason,
            stop=_what_stopped(self._stop),
            usage=usage,
            speculation=self._observation.tally.speculation(),
            time=self._observation.tally.times(),
            degraded=self._drafter.degraded,
        )


def _block(guess: Guess, chosen: Chosen) -> list[tuple[Choice, TokenSource]]:
    """What a verification commits, each token with who said it first."""
    if not guess.ids:
        own = TokenSource.TARGET
    elif len(chosen.accepted) == len(guess.ids):
        own = TokenSource.BONUS
    else:
        own = TokenSource.CORRECTION
    return [*((choice, guess.source) for choice in chosen.accepted), (chosen.next, own)]


def _what_stopped(stop: Stop | None) -> str | int | None:
    match stop:
        case None:
            return None
        case SequenceStop(sequence):
            return sequence
        case EosStop(token_id) | TokenStop(token_id):
            return token_id
