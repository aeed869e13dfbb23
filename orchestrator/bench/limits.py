"""What drafting could give at best, by the measured acceptance and cost. Pure.

a: share of the examined candidates of the draft model that were accepted. c: seconds to draft a
candidate, in plain steps of the target. g: candidates of a round. The model of a round is that of
Leviathan et al., arXiv 2211.17192: each candidate is accepted with chance a, whatever came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.bench.measurement import Measurement, Reply
from uag_common.limits import MAX_CANDIDATES


@dataclass(frozen=True, slots=True)
class BestLength:
    """The number of candidates that gives the greatest speed-up; 0: do not draft."""

    candidates: int
    speed_up: float


def tokens_per_round(a: float, g: int) -> float:
    """(1 - a^(g+1)) / (1 - a), the target's own token included."""
    return sum(a**place for place in range(g + 1))


def sequential(a: float, c: float, g: int) -> float:
    """What drafting g candidates and verifying them in turns gives over plain steps, if a
    verification costs one plain step and nothing else costs anything."""
    return tokens_per_round(a, g) / (1 + c * g)


def best_sequential(a: float, c: float) -> BestLength:
    """The most that it can give."""
    best = max(range(MAX_CANDIDATES + 1), key=lambda g: sequential(a, c, g))
    return BestLength(best, sequential(a, c, best))


def unlimited_verifier(a: float, c: float) -> float:
    """The same if the draft goes on while any number of verifications run beside each other: a
    token that the draft has right costs c, one that it has not costs a plain step. Infinite where a
    is 1 and c is 0."""
    cost = 1 - a + a * c
    return 1 / cost if cost else float("inf")


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured of a pair. `plain_step`: seconds of the target's forward pass for one
    token; in plain steps: `c` of a candidate, `v` of a verification with candidates, `r` of what a
    round spends outside both models."""

    a: float
    c: float
    v: float
    r: float
    plain_step: float


def costs(drafted: Sequence[Measurement], off: Sequence[Measurement]) -> Costs | None:
    """By a way that drafts with the model, and the target alone. None if either has too little in
    it to tell."""
    plain_step = _plain_step(off)
    figures = [each.reply.speculation for each in drafted if each.reply.speculation]
    times = [each.reply.time for each in drafted if each.reply.time]
    proposed = sum(each.candidates_proposed - each.lookup_proposed for each in figures)
    examined = sum(each.candidates_examined - each.lookup_examined for each in figures)
    accepted = sum(each.candidates_accepted - each.lookup_accepted for each in figures)
    rounds = sum(each.rounds for each in figures)
    verified = rounds - sum(each.plain_steps for each in figures)
    if not (plain_step and proposed and examined and verified):
        return None
    verify = sum(each.verify_seconds for each in times) / plain_step
    beside = sum(
        each.network_seconds + each.convert_seconds + each.queue_seconds + each.plan_seconds
        for each in times
    )
    return Costs(
        a=accepted / examined,
        c=sum(each.draft_seconds for each in times) / proposed / plain_step,
        # The plain steps among the rounds are taken out at their own price.
        v=max(0.0, verify - (rounds - verified)) / verified,
        r=beside / rounds / plain_step,
        plain_step=plain_step,
    )


def _plain_step(off: Sequence[Measurement]) -> float | None:
    replies: list[Reply] = [each.reply for each in off]
    rounds = sum(reply.rounds for reply in replies)
    seconds = sum(reply.time.verify_seconds for reply in replies if reply.time)
    return seconds / rounds if rounds and seconds else None
