"""A pair of models made of dice and a clock: what rounds cost and give, without any model."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from orchestrator.speculation.figures import (
    AnswerFigures,
    DraftedTokens,
    PairFigures,
    Verified,
)
from orchestrator.speculation.planner import Ask, Outlook, Plan, Planner, RunAhead
from orchestrator.speculation.steady import Plain

TOKENS = 256
"""Of an answer."""


@dataclass(frozen=True, slots=True)
class World:
    """`acceptance` may depend on how much of the run is over (0 to 1); costs are in steps of the
    target: of a draft token, of a call of the draft, of each further token in a pass. `slowed`: by
    how much the target is slower beside a draft that runs. `load`: sessions that share each pass.
    """

    acceptance: Callable[[float], float]
    draft_cost: float
    call_cost: float = 0.02
    token_cost: float = 0.005
    load: int = 1
    noise: float = 0.1
    slowed: float = 1.0
    step_seconds: float = 0.03

    def pass_seconds(self, tokens: int) -> float:
        """Without noise; the other sessions do as this one does."""
        return self.step_seconds * (1 + self.token_cost * (self.load * tokens - 1))


Policy = Callable[[Outlook], Plan]


@dataclass(slots=True)
class Running:
    """A draft that runs ahead: what it says is right or wrong, and when it is there."""

    began: float
    right: list[bool] = field(default_factory=list)
    taken: int = 0

    def there(self, now: float, step: float) -> int:
        """Tokens that are there and were not taken."""
        return max(0, int((now - self.began) / step)) - self.taken


class Answer:
    """One answer in a world, by the clock of the world. Which of its tokens the draft gets right is
    fixed by its dice alone: all ways to write it meet the same text."""

    def __init__(self, world: World, dice: random.Random, acceptance: float) -> None:
        self.world = world
        self.dice = dice
        self.acceptance = acceptance
        self.seconds = 0.0
        self.tokens = 1
        self.running: Running | None = None
        self._text = random.Random(dice.getrandbits(64))
        self._guessable: list[bool] = []

    @property
    def _draft_step(self) -> float:
        return self.world.draft_cost * self.world.step_seconds

    @property
    def in_hand(self) -> int:
        return 0 if self.running is None else self.running.there(self.seconds, self._draft_step)

    def _noisy(self, seconds: float) -> float:
        return seconds * math.exp(self.dice.gauss(0, self.world.noise))

    def _right(self, ahead: int) -> bool:
        """Whether the draft guesses the token that is so many after the committed ones."""
        place = self.tokens + ahead
        while len(self._guessable) <= place:
            self._guessable.append(self._text.random() < self.acceptance)
        return self._guessable[place]

    def round(self, plan: Plan) -> tuple[Verified, DraftedTokens | None, int, int, bool]:
        """What is seen of a round: and its candidates, and how many of them were accepted."""
        match plan:
            case Ask(tokens):
                return self._asked(tokens)
            case RunAhead(least):
                return self._ahead(least)
            case _:
                self.running = None
                return self._verified(0, 0, None, False)

    def _asked(self, tokens: int) -> tuple[Verified, DraftedTokens | None, int, int, bool]:
        self.running = None
        forward = sum(self._noisy(self._draft_step) for _ in range(tokens))
        seconds = forward + self._noisy(self.world.call_cost * self.world.step_seconds)
        self.seconds += seconds
        accepted = 0
        while accepted < tokens and self._right(accepted):
            accepted += 1
        seen = DraftedTokens(seconds, forward, tokens, tokens, tokens, tokens, 0)
        return self._verified(tokens, accepted, seen, False)

    def _ahead(self, least: int) -> tuple[Verified, DraftedTokens | None, int, int, bool]:
        step = self._draft_step
        if self.running is None:
            call = self.world.call_cost * self.world.step_seconds
            self.running = Running(self.seconds + self._noisy(call))
        running = self.running
        if (missing := least - running.there(self.seconds, step)) > 0:
            there = running.began + (running.taken + least) * step
            self.seconds = max(self.seconds + 1e-9 * missing, there)
        candidates = running.there(self.seconds, step)
        accepted = 0
        while accepted < candidates and self._right(accepted):
            accepted += 1
        all_right = accepted == candidates and self._right(accepted)
        result = self._verified(candidates, accepted, None, True)
        if all_right:
            running.taken += candidates + 1
        else:
            self.running = None
        return result

    def _verified(
        self, candidates: int, accepted: int, drafted: DraftedTokens | None, beside: bool
    ) -> tuple[Verified, DraftedTokens | None, int, int, bool]:
        tokens = 1 + candidates
        slower = self.world.slowed if beside else 1.0
        forward = self._noisy(self.world.pass_seconds(tokens) * slower)
        outside = self._noisy(0.001)
        self.seconds += forward + outside
        self.tokens += accepted + 1
        load = self.world.load
        seen = Verified(forward + outside, forward, 1, load, load * tokens)
        return seen, drafted, candidates, accepted, beside


def fixed(plan: Plan) -> Policy:
    return lambda _: plan


def run_fixed(world: World, plan: Plan, answers: int, seed: int) -> float:
    """Seconds by token."""
    seconds = tokens = 0.0
    for number in range(answers):
        answer = Answer(
            world, random.Random((seed << 16) + number), world.acceptance(number / answers)
        )
        while answer.tokens < TOKENS:
            answer.round(plan)
        seconds, tokens = seconds + answer.seconds, tokens + answer.tokens
    return seconds / tokens


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as it was written: what was planned in its rounds, and what it took."""

    plans: tuple[Plan, ...]
    seconds: float
    tokens: int

    def rounds_of(self, kind: type[Plan]) -> int:
        return sum(isinstance(plan, kind) for plan in self.plans)


def planned_answers(
    world: World,
    answers: int,
    seed: int,
    *,
    ahead: bool,
    known_cost: float | None = None,
    most_draft_tokens: int = 32,
    pair: PairFigures | None = None,
) -> Iterator[Written]:
    """One after another, of one pair that is not known before."""
    known = PairFigures(world.draft_cost if known_cost is None else known_cost)
    for number in range(answers):
        answer = Answer(
            world, random.Random((seed << 16) + number), world.acceptance(number / answers)
        )
        figures = AnswerFigures(pair or known)
        planner = Planner(figures, most_draft_tokens=most_draft_tokens, may_run_ahead=ahead)
        plans = tuple(plan_answer(answer, figures, planner))
        planner.closed()
        yield Written(plans, answer.seconds, answer.tokens)


def seconds_by_token(answers: Iterable[Written]) -> float:
    seconds = tokens = 0.0
    for answer in answers:
        seconds, tokens = seconds + answer.seconds, tokens + answer.tokens
    return seconds / tokens


def run_planned(
    world: World, answers: int, seed: int, *, ahead: bool, known_cost: float | None = None
) -> float:
    """Seconds by token, with all that is lost to learning."""
    return seconds_by_token(
        planned_answers(world, answers, seed, ahead=ahead, known_cost=known_cost)
    )


def plan_answer(answer: Answer, figures: AnswerFigures, planner: Planner) -> Iterator[Plan]:
    """Each round, when it is over. A model that is wanted is ready at once."""
    opened = False
    while answer.tokens < TOKENS:
        if not opened and planner.wants_model:
            planner.opened()
            opened = True
        began = answer.seconds
        room = TOKENS - answer.tokens
        plan = planner.plan(Outlook(room, None, model_ready=opened, in_hand=answer.in_hand))
        seen, drafted, candidates, accepted, beside = answer.round(plan)
        if drafted is not None:
            figures.drafted(drafted)
        figures.verified(seen, beside_draft=beside)
        if candidates:
            figures.model_examined(min(accepted + 1, candidates), accepted)
        planner.done(accepted + 1, answer.seconds - began, plain=isinstance(plan, Plain))
        yield plan
