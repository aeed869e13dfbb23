"""How much of a prompt may share a pass with the steps of others, learnt from the passes. Pure."""

from __future__ import annotations

from uag_common.batching.plan import LEAST_CHUNK

STRETCH = 1.7
"""A pass with a part of a prompt takes so many times as long as one without, at most."""
MOST_TOKENS = 512
"""Of a prompt in one pass, where nobody else waits."""
WEIGHT = 0.3
"""Of the newest pass in each average."""
CAUTION = 0.7
"""Of what the newest pass took for a token the next is thought to take at least."""


class Pace:
    """Averages of what passes took; those of the latest count most."""

    def __init__(self) -> None:
        self._short_seconds: float | None = None
        self._token_seconds: float | None = None

    @property
    def pass_seconds(self) -> float:
        """Of a pass without a prompt; 0 as long as there was none."""
        return self._short_seconds or 0.0

    def observe(self, prompt_tokens: int, seconds: float) -> None:
        """A pass took so long, with so many tokens of prompts."""
        if not prompt_tokens:
            self._short_seconds = _mixed(self._short_seconds, seconds)
        else:
            more = max(0.0, seconds - self.pass_seconds) / prompt_tokens
            # Once it was too slow, the next one must not be so too.
            self._token_seconds = max(_mixed(self._token_seconds, more), CAUTION * more)

    def prompt_tokens(self, *, shared: bool) -> int:
        """How many tokens of prompts may go into the next pass. `shared`: others wait for it."""
        if not shared:
            return MOST_TOKENS
        if not self._token_seconds or self._short_seconds is None:
            return LEAST_CHUNK
        room = (STRETCH - 1.0) * self._short_seconds / self._token_seconds
        # It may be more than any number.
        return max(LEAST_CHUNK, int(min(MOST_TOKENS, room)))


def _mixed(before: float | None, now: float) -> float:
    return now if before is None else (1.0 - WEIGHT) * before + WEIGHT * now
