"""The ways to draft in round after round, and how many tokens a second each gives. Pure.

A round that drafts g tokens one after another and then verifies them commits 1 + a + ... + a^g
tokens (Leviathan et al., arXiv 2211.17192). One that drafts beside the verification, on the guess
that all is accepted and its own next token is the target's, finds candidates ready after a right
guess and starts anew after a wrong one (Liu et al., arXiv 2408.11850).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.speculation.acceptance import Expected, expected_accepted
from orchestrator.speculation.figures import AnswerFigures, PairFigures

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64)
"""Draft tokens that are tried: between larger ones the rate hardly changes."""

LEAST_WAITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 20)
"""Candidates to wait for that are tried where the draft runs ahead."""


MOST_READY = 32.0
"""Candidates that a draft which runs ahead may have ready: none more are counted on."""


@dataclass(frozen=True, slots=True)
class Plain:
    """Never asks the draft."""


@dataclass(frozen=True, slots=True)
class Sequential:
    """Drafts up to `tokens`, then verifies."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """The draft never waits; a verification begins as soon as `least` candidates are there."""

    least: int


Steady = Plain | Sequential | Ahead


@dataclass(frozen=True, slots=True)
class Rated:
    """A way, and the tokens a second that it gives."""

    way: Steady
    rate: float


@dataclass(frozen=True, slots=True)
class Round:
    """What a round gives and takes on average."""

    tokens: float
    seconds: float

    def value(self, worth: float) -> float:
        """Its tokens, less what its seconds are worth at so many tokens a second."""
        return self.tokens - worth * self.seconds


def steady_ways(
    figures: AnswerFigures, chances: Expected, most: int, may_run_ahead: bool
) -> Sequence[Rated]:
    """All ways, `Plain` first; `most`: draft tokens of a round."""
    ways = [Rated(Plain(), 1 / figures.verification().plain)]
    if not most:
        return ways
    rounds = sequential_rounds(figures, chances, most)
    sizes = [tokens for tokens in SIZES if tokens <= most]
    ways += [
        Rated(Sequential(tokens), rounds[tokens].tokens / rounds[tokens].seconds)
        for tokens in sizes
    ]
    if may_run_ahead:
        ways += [_ahead(figures, chances, least) for least in LEAST_WAITS if least <= most]
    return ways


def sequential_rounds(figures: AnswerFigures, chances: Expected, most: int) -> Sequence[Round]:
    """At n, from 0 to `most`: a round that asks for n draft tokens. A draft may end before it has
    all of them."""
    pair, verification = figures.pair, figures.verification()
    expected = expected_accepted(chances, 2 * most)
    step, call = figures.draft_step_seconds, pair.draft_outside_seconds.value
    rounds, reached, passes, ended_tokens, ended_candidates = list[Round](), 1.0, 0.0, 0.0, 0.0
    for drafted in range(most + 1):
        candidates = _candidates(pair, drafted)
        accepted = _between(expected, candidates)
        seconds = verification.seconds(ended_candidates + reached * candidates)
        draft = passes * step + call
        rounds.append(Round(1 + ended_tokens + reached * accepted, seconds + draft))
        passes += reached
        ends = reached * (1 - pair.going_on.at(drafted))
        ended_tokens, ended_candidates = (
            ended_tokens + ends * accepted,
            ended_candidates + ends * candidates,
        )
        reached -= ends
    return rounds


def _candidates(pair: PairFigures, draft_tokens: float) -> float:
    """Target tokens that so many draft tokens give."""
    return max(0.0, (draft_tokens - pair.lost.value) * pair.per_draft_token.value)


def _ahead(figures: AnswerFigures, chances: Expected, least: int) -> Rated:
    """Two states: the draft starts anew, or it was right and has candidates ready."""
    pair, verification = figures.pair, figures.verification()
    slowed = pair.slowed.value
    step = figures.draft_step_seconds / max(0.1, pair.per_draft_token.value)
    # The first token that comes in the meantime is the guess of the target's own.
    ready = verification.seconds(least) * slowed / step - 1
    after_right = min(MOST_READY, max(float(least), ready))
    accepted = expected_accepted(chances, int(after_right) + 2)
    anew, right = _block(accepted, least), _block(accepted, after_right)
    # Shares of the rounds that start in each state.
    anew_share = (1 - right.goes_on) / (1 - right.goes_on + anew.goes_on)
    ahead, waited = pair.ahead_outside_seconds, pair.draft_outside_seconds
    call = (ahead if ahead.known else waited).value if least else 0.0
    anew_seconds = verification.seconds(least) * slowed + least * step + call
    right_seconds = verification.seconds(after_right) * slowed + max(0.0, least - ready) * step
    tokens = anew_share * anew.tokens + (1 - anew_share) * right.tokens
    seconds = anew_share * anew_seconds + (1 - anew_share) * right_seconds
    return Rated(Ahead(least), tokens / seconds)


@dataclass(frozen=True, slots=True)
class _Block:
    """Tokens that a verification commits, and the chance that all that was guessed is right, the
    target's own token too."""

    tokens: float
    goes_on: float


def _block(accepted: Sequence[float], candidates: float) -> _Block:
    """Where so many candidates are there on average."""
    now = _between(accepted, candidates)
    return _Block(1 + now, _between(accepted, candidates + 1) - now)


def _between(values: Sequence[float], place: float) -> float:
    """Linear between the values at whole places."""
    whole = min(int(place), len(values) - 1)
    following = min(whole + 1, len(values) - 1)
    return values[whole] + (place - whole) * (values[following] - values[whole])
