"""How much faster drafting makes a target, by formula (Leviathan et al., arXiv 2211.17192).

a: chance that an examined candidate is accepted. c: what a candidate costs to draft, in plain steps
of the target. r: what a round costs beside models, in the same. g: candidates of a round. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.settings import OrchestratorSettings
from tests.docs.pages import table
from uag_common.limits import MAX_CANDIDATES

ACCEPTANCES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
COSTS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
DEFAULT_LENGTH = OrchestratorSettings.forced_draft_tokens


def tokens_per_round(a: float, g: int) -> float:
    """Of a round with g candidates, the target's own token included."""
    return sum(a**place for place in range(g + 1))


def speed_up(a: float, c: float, g: int, r: float = 0.0) -> float:
    """Tokens per second with drafts over those without; a verification costs one plain step."""
    return tokens_per_round(a, g) / (1 + c * g + r) if g else 1.0


def best_length(a: float, c: float, r: float = 0.0) -> int:
    """The g that gives the most; 0: drafting does not pay."""
    return max(range(MAX_CANDIDATES + 1), key=lambda g: speed_up(a, c, g, r))


def least_acceptance(overhead: float, g: int) -> float:
    """The a from which on a round with g candidates pays where it costs 1 + overhead."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if tokens_per_round(middle, g) >= 1 + overhead else (middle, high)
    return high


def best() -> str:
    """The speed-up with the best g, and that g."""

    def cell(a: float, c: float) -> str:
        g = best_length(a, c)
        return f"{speed_up(a, c, g):.2f} ({g})" if g else "1 (0)"

    return _of_acceptance_and_cost(cell)


def fixed() -> str:
    """The speed-up with the default of the setting."""
    told = f"g = {DEFAULT_LENGTH}, the default of `UAG_ORCHESTRATOR_FORCED_DRAFT_TOKENS`:\n\n"
    return told + _of_acceptance_and_cost(lambda a, c: f"{speed_up(a, c, DEFAULT_LENGTH):.2f}")


def break_even() -> str:
    """The acceptance from which on a round pays."""
    lengths, overheads = (1, 2, 3, 5, 8), (0.1, 0.25, 0.5, 1.0, 2.0)
    header = [r"c*g + r \ g", *map(str, lengths)]
    rows = [[f"{over:g}", *(_least(over, g) for g in lengths)] for over in overheads]
    return table(header, rows)


def small_drafts() -> str:
    """A cheap draft that is often wrong beside a dear one that is often right."""
    drafts = ((0.4, 0.005), (0.5, 0.01), (0.7, 0.25), (0.8, 0.5))
    rows = []
    for a, c in drafts:
        g = best_length(a, c)
        rows.append((f"{a:g}", f"{c:g}", str(g), f"{speed_up(a, c, g):.2f}", f"{1 / (1 - a):.2f}"))
    return table(("a", "c", "best g", "speed-up", "limit 1/(1-a)"), rows)


def _of_acceptance_and_cost(cell: Callable[[float, float], str]) -> str:
    header = [r"a \ c", *(f"{c:g}" for c in COSTS)]
    return table(header, [[f"{a:g}", *(cell(a, c) for c in COSTS)] for a in ACCEPTANCES])


def _least(overhead: float, g: int) -> str:
    """With g candidates a round yields g + 1 tokens at most."""
    return f"{least_acceptance(overhead, g):.2f}" if overhead < g else "never"
