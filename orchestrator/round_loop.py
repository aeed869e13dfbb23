"""The life of an answer: prefill, then rounds of propose, verify, commit. No grpc, no torch.

The one truth is `context`: prompt and committed target ids. Everything else follows from it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from orchestrator.drafter import Drafter
from orchestrator.events import CommittedToken, Delta, Finished, FinishReason, TokenSource
from orchestrator.sessions import Chosen, VerifyPort
from orchestrator.tally import Tally
from orchestrator.text_stream import TextStream
from uag_common.context import ContextVersion
from uag_common.limits import MAX_CANDIDATES


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Where an answer must end."""

    max_new_tokens: int
    context_length: int
    eos_ids: frozenset[int]


class RoundLoop:
    """One answer."""

    def __init__(
        self,
        prompt_ids: Sequence[int],
        limits: AnswerLimits,
        verify: VerifyPort,
        drafter: Drafter,
        text: TextStream,
        tally: Tally,
    ) -> None:
        self._context = list(prompt_ids)
        self._prompt_tokens = len(prompt_ids)
        self._limits = limits
        self._verify = verify
        self._drafter = drafter
        self._text = text
        self._tally = tally
        self._finish: FinishReason | None = None

    async def run(self) -> AsyncGenerator[Delta | Finished, None]:
        """Raises the UagError of the target if it is lost; a lost draft ends nothing."""
        try:
            self._drafter.start()
            first = await self._verify.open(tuple(self._context))
            self._tally.prefilled(first.time)
            yield self._commit(0, (), first)
            round_number = 0
            while self._finish is None:
                round_number += 1
                candidates = await self._drafter.propose(round_number, self._room())
                version = ContextVersion.of(self._context, len(self._context))
                chosen = await self._verify.verify(round_number, version, candidates)
                delta = self._commit(round_number, candidates, chosen)
                self._tally.verified(
                    len(candidates), _accepted(delta), len(delta.tokens), chosen.time
                )
                yield delta
            yield self._finished(self._finish)
        finally:
            self._drafter.close()
            self._verify.close()

    def _room(self) -> int:
        """Most candidates that a round can use: one token more is committed than is accepted."""
        answered = len(self._context) - self._prompt_tokens
        left = min(
            self._limits.max_new_tokens - answered,
            self._limits.context_length - len(self._context),
        )
        return min(left - 1, MAX_CANDIDATES)

    def _commit(self, round_number: int, candidates: Sequence[int], chosen: Chosen) -> Delta:
        """Takes the block up to where the answer ends inside it."""
        tokens: list[CommittedToken] = []
        for token_id, source in _block(candidates, chosen):
            self._context.append(token_id)
            self._finish = self._reason(token_id)
            tokens.append(CommittedToken(token_id, source, round_number, self._spell(token_id)))
            if self._finish is not None:
                break
        if self._finish is None:
            self._drafter.commit([token.id for token in tokens])
        return Delta(tuple(tokens))

    def _spell(self, token_id: int) -> str:
        """The text that the newest token completes; at the end, what is left of it."""
        ended = self._finish is not None
        shown = "" if self._finish is FinishReason.EOS else self._text.push((token_id,))
        return shown + self._text.flush() if ended else shown

    def _reason(self, token_id: int) -> FinishReason | None:
        if token_id in self._limits.eos_ids:
            return FinishReason.EOS
        if len(self._context) - self._prompt_tokens >= self._limits.max_new_tokens:
            return FinishReason.MAX_TOKENS
        if len(self._context) >= self._limits.context_length:
            return FinishReason.CONTEXT_LIMIT
        return None

    def _finished(self, reason: FinishReason) -> Finished:
        return Finished(
            reason=reason,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=len(self._context) - self._prompt_tokens,
            speculation=self._tally.speculation(),
            time=self._tally.times(),
            degraded=self._drafter.degraded,
        )


def _accepted(delta: Delta) -> int:
    return sum(token.source is TokenSource.DRAFT for token in delta.tokens)


def _block(candidates: Sequence[int], chosen: Chosen) -> list[tuple[int, TokenSource]]:
    """What a verification commits, each id with who said it first."""
    accepted = candidates[: chosen.accepted]
    if not candidates:
        own = TokenSource.TARGET
    elif chosen.accepted == len(candidates):
        own = TokenSource.BONUS
    else:
        own = TokenSource.CORRECTION
    return [*((item, TokenSource.DRAFT) for item in accepted), (chosen.next_id, own)]
