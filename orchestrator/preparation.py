"""What of a request is computed before any model runs: prompts encoded, constraints tried.

Knows how much of it may be done at once. It must not know rounds or messages.
"""

from __future__ import annotations

from orchestrator.conversion.conversion import Conversion
from orchestrator.prompt.encoder import LARGE_TEXT
from orchestrator.request import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from orchestrator.side import EncodedPrompt, Side, open_conversions
from uag_common.constraint.grammar import check_constraint
from uag_common.decoding import Constraint
from uag_common.work_pool import WorkPool


class Preparation:
    """Threads for each kind of work. A usual prompt takes a few milliseconds and waits neither for
    large ones nor for constraints, which may take half a second each."""

    def __init__(self) -> None:
        self._prompts = WorkPool("prompts", threads=4, most_waiting=256)
        self._large_prompts = WorkPool("large prompts", threads=2, most_waiting=16)
        self._constraints = WorkPool("constraints", threads=4, most_waiting=32)

    async def encode(
        self, side: Side, prompt: Prompt, truncate_to: int | None = None
    ) -> EncodedPrompt:
        """As `Side.encode`. Raises OverloadedError if there is no room for it now."""
        return await self._pool(_size(prompt)).run(side.encode, prompt, truncate_to)

    async def open_conversions(
        self, target: Side, draft: Side, prompt: EncodedPrompt, n: int
    ) -> tuple[Conversion, ...]:
        """As `open_conversions`. Raises OverloadedError if there is no room for it now."""
        pool = self._pool(len(prompt.ids))
        return await pool.run(open_conversions, target, draft, prompt, n)

    async def check(self, constraint: Constraint) -> None:
        """As `check_constraint`. Raises OverloadedError if there is no room for it now."""
        await self._constraints.run(check_constraint, constraint)

    def close(self) -> None:
        """Drops what waits."""
        for pool in (self._prompts, self._large_prompts, self._constraints):
            pool.close()

    def _pool(self, size: int) -> WorkPool:
        return self._large_prompts if size > LARGE_TEXT else self._prompts


def _size(prompt: Prompt) -> int:
    match prompt:
        case TextPrompt(text):
            return len(text)
        case ChatPrompt(messages):
            return sum(len(message.content) for message in messages)
        case TokenPrompt(ids):
            return len(ids)
