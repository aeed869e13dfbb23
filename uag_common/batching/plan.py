"""Which waiting work goes into the next forward pass, and how much of it. Pure.

Short work (plain steps, drafted tokens, verifications) goes into every pass. A long one (a prompt)
gets what room is left of it, the one that came first before the others: so a prompt neither stalls
the answers of others nor waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHORT_TOKENS = 32
"""Work of at most so many tokens is short: a verification has one more than the draft proposed."""
LEAST_CHUNK = 8
"""Tokens of a prompt that run in any pass that has room for it, so that it gets on."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Work that waits: it came at `due` and had its last turn at `turn` (each earlier by its
    priority, in seconds), and has so many tokens `pending`."""

    due: float
    turn: float
    pending: int

    @property
    def short(self) -> bool:
        return self.pending <= SHORT_TOKENS


@dataclass(frozen=True, slots=True)
class PassLimits:
    """Most parts and tokens of a pass, and most tokens of prompts among them."""

    parts: int
    tokens: int
    prompt_tokens: int


def plan(wanted: Sequence[Wanted], limits: PassLimits) -> list[int]:
    """How many tokens of each run in the next pass: all pending, a first part of them, or none."""
    if limits.parts == 1:
        return _one(wanted, limits)
    chosen = [0] * len(wanted)
    shorts = sorted((w.turn, i) for i, w in enumerate(wanted) if w.short)
    longs = sorted((w.due, i) for i, w in enumerate(wanted) if not w.short)
    parts, tokens = limits.parts, limits.tokens
    if longs:
        parts, tokens = parts - 1, tokens - LEAST_CHUNK
    for _, index in shorts[:parts]:
        if wanted[index].pending > tokens:
            break
        chosen[index] = wanted[index].pending
        tokens -= chosen[index]
    left = min(limits.prompt_tokens, tokens + LEAST_CHUNK)
    for _, index in longs[: limits.parts - sum(map(bool, chosen))]:
        chosen[index] = min(wanted[index].pending, left)
        left -= chosen[index]
    return chosen


def _one(wanted: Sequence[Wanted], limits: PassLimits) -> list[int]:
    """They take turns."""
    chosen = [0] * len(wanted)
    if wanted:
        index = min(range(len(wanted)), key=lambda index: wanted[index].turn)
        most = limits.tokens if wanted[index].short else limits.prompt_tokens
        chosen[index] = min(wanted[index].pending, most, limits.tokens)
    return chosen
