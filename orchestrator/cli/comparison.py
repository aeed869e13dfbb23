"""An answer with drafts beside the target's own: same ids or not, faster or not, and why.

Pure: figures in, lines out. The costs are those that the two answers measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.cli.figures import tokens_per_round, tokens_per_second
from orchestrator.client import Finished
from uag_common.common_prefix import common_prefix


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to."""

    ids: tuple[int, ...]
    finished: Finished


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds, by the two answers: a plain step of the target, a verification, a drafted token."""

    plain_step: float
    verification: float
    drafted_token: float


NEAR_TIES = (
    "outside float32 the target itself answers a near-tie otherwise when a forward pass has "
    "another shape"
)
WHAT_TO_TRY = (
    "try: fewer draft tokens (--draft-tokens 2); above all a target that is many times larger than",
    "     its draft",
)


def lines(drafted: Answer, alone: Answer) -> list[str]:
    """Ids, speed and, where drafting did not pay, why and what to try."""
    told = [ids_line(drafted, alone), speed_line(drafted, alone)]
    if ratio(drafted, alone) < 1:
        told.extend((*reasons(drafted, alone), *WHAT_TO_TRY))
    return told


def planned_lines(planned: Answer, alone: Answer) -> list[str]:
    """Ids and speed of an answer that the server planned."""
    return [
        ids_line(planned, alone),
        f"speed: {tokens_per_second(planned.finished):.1f} tokens/s, "
        f"{tokens_per_second(alone.finished):.1f} without: ratio {ratio(planned, alone):.2f}",
    ]


def ids_line(drafted: Answer, alone: Answer) -> str:
    """Whether both answers have the same ids."""
    same = common_prefix(drafted.ids, alone.ids)
    if drafted.ids == alone.ids:
        return f"ids: identical, all {same}"
    return f"ids: different from token {same + 1} on; {NEAR_TIES}"


def ratio(drafted: Answer, alone: Answer) -> float:
    """Speed with drafts over speed without."""
    return tokens_per_second(drafted.finished) / tokens_per_second(alone.finished)


def speed_line(drafted: Answer, alone: Answer) -> str:
    """The ratio as it is."""
    value = ratio(drafted, alone)
    word = "faster" if value > 1 else "slower"
    return (
        f"speed: {tokens_per_second(drafted.finished):.1f} tokens/s with the draft, "
        f"{tokens_per_second(alone.finished):.1f} tokens/s without: ratio {value:.2f}, {word}"
    )


def costs(drafted: Finished, alone: Finished) -> StepCosts | None:
    """None if either answer has too little in it to tell."""
    counts = drafted.speculation
    verified = counts.rounds - counts.plain_steps
    if not (verified and counts.draft_tokens_proposed and alone.speculation.rounds):
        return None
    plain = alone.time.verify_seconds / alone.speculation.rounds
    if not plain:
        return None
    return StepCosts(
        plain_step=plain,
        # The plain steps among the rounds are taken out at their own price.
        verification=max(0.0, drafted.time.verify_seconds - plain * counts.plain_steps) / verified,
        drafted_token=drafted.time.draft_seconds / counts.draft_tokens_proposed,
    )


def reasons(drafted: Answer, alone: Answer) -> Sequence[str]:
    """What a round costs and gains, as measured; empty if nothing can be told."""
    cost = costs(drafted.finished, alone.finished)
    if cost is None:
        return ()
    counts = drafted.finished.speculation
    per_round = counts.draft_tokens_proposed / (counts.rounds - counts.plain_steps)
    spent = per_round * cost.drafted_token + cost.verification
    gained = tokens_per_round(drafted.finished)
    return (
        f"why: a drafted token costs {_ms(cost.drafted_token)}, "
        f"{cost.drafted_token / cost.plain_step:.2f} of a plain step of the target "
        f"({_ms(cost.plain_step)})",
        f"     a round drafts {per_round:.1f} tokens and verifies them ({_ms(cost.verification)}): "
        f"{_ms(spent)} for {gained:.1f} tokens,",
        f"     which the target alone says in {_ms(gained * cost.plain_step)}",
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
