"""How much longer a forward pass takes with more tokens in it. Pure.

A pass of t tokens takes 1 + jump·[t > 1] + slope·(t - 1) passes of one token: where a pass reads
the weights once whatever it runs, both are small; where products read plain matrices on a CPU, a
second token can cost half a pass. Learnt from all passes of a target; what is old counts less.
"""

from __future__ import annotations

from dataclasses import dataclass

KEEP = 0.995
"""What of an observation still counts after the next one."""

FIRST_JUMP, FIRST_SLOPE = 0.15, 0.02
"""What is taken for them before anything is known."""

SLOPE_WEIGHT = 400.0
JUMP_WEIGHT = 2.0
"""How much that counts: the squares of tokens, and the passes, that outweigh it."""

PLAUSIBLE = (0.3, 4.0)
"""Of a pass against what was expected; what is outside was held up by something else."""


@dataclass(slots=True)
class _Sums:
    """Decayed sums of the two features, jump and tokens, and of what they must explain."""

    jumps: float = JUMP_WEIGHT
    tokens: float = 0.0
    squares: float = SLOPE_WEIGHT
    by_jump: float = JUMP_WEIGHT * FIRST_JUMP
    by_tokens: float = SLOPE_WEIGHT * FIRST_SLOPE


class PassCost:
    """Of one target."""

    def __init__(self) -> None:
        self._sums = _Sums()
        self._jump, self._slope = FIRST_JUMP, FIRST_SLOPE

    @property
    def jump(self) -> float:
        """What the second token adds, besides what each adds."""
        return self._jump

    @property
    def slope(self) -> float:
        """What each token adds."""
        return self._slope

    def of(self, tokens: float) -> float:
        """How long a pass of so many tokens takes, by that of one token."""
        return 1.0 + self._jump * (tokens > 1) + self._slope * max(0.0, tokens - 1)

    def observe(self, tokens: int, of_plain: float, sessions: int = 1) -> None:
        """A pass of so many tokens, of so many sessions, took `of_plain` times what one in which
        each session runs one token takes."""
        more, plain = tokens - sessions, self.of(sessions)
        expected = self.of(tokens) / plain
        if more <= 0 or not PLAUSIBLE[0] * expected < of_plain < PLAUSIBLE[1] * expected:
            return
        # Where sessions share a pass, it has a second token in any case.
        jump, extra, sums = float(sessions == 1), (of_plain - 1.0) * plain, self._sums
        sums.jumps = KEEP * sums.jumps + (1 - KEEP) * JUMP_WEIGHT + jump
        sums.tokens = KEEP * sums.tokens + jump * more
        sums.squares = KEEP * sums.squares + (1 - KEEP) * SLOPE_WEIGHT + more * more
        sums.by_jump = KEEP * sums.by_jump + (1 - KEEP) * JUMP_WEIGHT * FIRST_JUMP + jump * extra
        sums.by_tokens = (
            KEEP * sums.by_tokens + (1 - KEEP) * SLOPE_WEIGHT * FIRST_SLOPE + more * extra
        )
        self._solve()

    def _solve(self) -> None:
        """Least squares in two unknowns, neither below 0."""
        sums = self._sums
        determinant = sums.jumps * sums.squares - sums.tokens * sums.tokens
        jump = (sums.by_jump * sums.squares - sums.by_tokens * sums.tokens) / determinant
        slope = (sums.by_tokens * sums.jumps - sums.by_jump * sums.tokens) / determinant
        if jump < 0:
            jump, slope = 0.0, sums.by_tokens / sums.squares
        if slope < 0:
            jump, slope = max(0.0, sums.by_jump / sums.jumps), 0.0
        self._jump, self._slope = jump, slope
