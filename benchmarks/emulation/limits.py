"""What speculation could give at best, in tokens for the time of a plain step. Pure.

`a`: the chance that a candidate is accepted; `c`: what drafting one takes, in steps of the target.
Verification costs a step however many candidates it has, and nothing else takes time.
"""

from __future__ import annotations

MOST_DRAFTED = 64


def tokens_per_step(a: float, c: float, g: int) -> float:
    """Where each round drafts g tokens, and the target waits for them."""
    committed = g + 1 if a == 1.0 else (1.0 - a ** (g + 1)) / (1.0 - a)
    return committed / (1.0 + c * g)


def best_draft_tokens(a: float, c: float) -> int:
    """The g with which that is most; 0: not to draft."""
    return max(range(MOST_DRAFTED + 1), key=lambda g: tokens_per_step(a, c, g))


def sequential_limit(a: float, c: float) -> float:
    """With the best g."""
    return tokens_per_step(a, c, best_draft_tokens(a, c))


def unlimited_limit(a: float, c: float) -> float:
    """Where any number of verifications may run beside the draft, which never waits for one that
    accepts: a token takes c if it is accepted, and a step if it is not."""
    return 1.0 / (1.0 - a + a * c)
