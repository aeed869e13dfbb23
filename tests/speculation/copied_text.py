"""A text with matches made of dice: how often there is one, how long it is, how far it is right."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.speculation.figures import AnswerFigures, PairFigures, Verified
from orchestrator.speculation.lookup import Match
from orchestrator.speculation.planner import Copy, Outlook, Planner
from orchestrator.speculation.steady import Plain

TOKENS = 256
MOST = 16


@dataclass(frozen=True, slots=True)
class CopiedText:
    """`chance`: that the token after a match of that length is right; each right one makes the
    match longer. `matches`: share of rounds with one. A pass takes `jump` steps more as soon as it
    has a second token, and `token_cost` for each."""

    chance: Callable[[int], float]
    matches: float = 0.7
    jump: float = 0.0
    token_cost: float = 0.005
    noise: float = 0.1
    step_seconds: float = 0.03

    def pass_seconds(self, tokens: int) -> float:
        return self.step_seconds * (1 + self.jump * (tokens > 1) + self.token_cost * (tokens - 1))

    @property
    def plain(self) -> float:
        """Seconds by token without copies."""
        noise = math.exp(self.noise**2 / 2)
        return (self.pass_seconds(1) + 0.001) * noise


@dataclass(slots=True)
class Copied:
    """What came of it: the lengths of the matches that there were, and of those taken."""

    seconds: float
    tokens: int
    found: list[int]
    taken: list[int]

    @property
    def seconds_by_token(self) -> float:
        return self.seconds / self.tokens

    def share(self, least: int, most: int) -> float:
        """Of the matches of such lengths, how many were taken."""
        taken, found = (
            sum(least <= length <= most for length in lengths)
            for lengths in (self.taken, self.found)
        )
        return taken / found


def copy_answers(text: CopiedText, answers: int, seed: int) -> Copied:
    """By the planner, without a draft model."""
    pair, dice, done = PairFigures(1.0), random.Random(seed), Copied(0.0, 0, [], [])
    for _ in range(answers):
        figures = AnswerFigures(pair)
        planner = Planner(figures, most_draft_tokens=0, may_run_ahead=False)
        end = done.tokens + TOKENS
        while done.tokens < end:
            _round(text, figures, planner, dice, done)
    return done


def _round(
    text: CopiedText,
    figures: AnswerFigures,
    planner: Planner,
    dice: random.Random,
    done: Copied,
) -> None:
    match = None
    if dice.random() < text.matches:
        match = Match(min(12, 1 + int(dice.expovariate(0.5))), (1,) * MOST)
        done.found.append(match.length)
    plan = planner.plan(Outlook(MOST, match, model_ready=False))
    candidates = plan.tokens if isinstance(plan, Copy) else 0
    accepted = 0
    if match is not None and candidates:
        while accepted < candidates and dice.random() < text.chance(match.length + accepted):
            accepted += 1
        done.taken.append(match.length)
    forward, outside = (
        seconds * math.exp(dice.gauss(0, text.noise))
        for seconds in (text.pass_seconds(1 + candidates), 0.001)
    )
    seen = Verified(forward + outside, forward, 1, 1, 1 + candidates)
    figures.verified(seen, beside_draft=False)
    if match is not None and candidates:
        figures.copies_examined(match.length, min(accepted + 1, candidates), accepted)
    planner.done(accepted + 1, forward + outside, plain=isinstance(plan, Plain))
    done.seconds += forward + outside
    done.tokens += accepted + 1
