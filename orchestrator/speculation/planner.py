"""What to do in each round: a plain step, a copy of earlier text, or a draft of some tokens. Pure.

The long-run rate of committed tokens is what counts. The best steady way to draft is found by the
renewal formula, tokens of a round by its seconds, from what was measured; what one round may do
besides is then worth its tokens less what its seconds would have given at that rate. Knows figures;
it must not know ids, models or clocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from orchestrator.speculation.acceptance import Expected, Known, expected_accepted
from orchestrator.speculation.decayed import DecayedMean
from orchestrator.speculation.figures import ENOUGH_CONTROLS, AnswerFigures
from orchestrator.speculation.lookup import Match
from orchestrator.speculation.steady import (
    Ahead,
    Plain,
    Rated,
    Sequential,
    Steady,
    sequential_rounds,
    steady_ways,
)

BETTER = 1.03
"""By so much another kind of steady way must be better to be taken: estimates are never still."""

REPLANNED_EVERY, PLAIN_REPLANNED_EVERY = 4, 16
CONTROL_EVERY, FIRST_CONTROL_EVERY = 64, 6
"""Rounds: a plain step among others tells what they are compared with. More often until that is
known, and by how much a draft that runs ahead slows the target."""

MOST_GAIN = 8.0
"""By which controls become rarer."""

PROBE_TOKENS, PROBES_OF_ANSWER = 2, 4
"""What is drafted to find out whether a pair pays, and in how many rounds of an answer."""

OPENING_STEPS = 4.0
"""Steps of the target that a session of the draft costs, with the prompt that it has to read."""

MOST_HOPE = 0.95
PROMISE_ROUNDS = 16
"""Drafted rounds that are held together against what was expected of them."""

FORGIVEN = 0.001
"""Of what a way fell short by, in each round without it."""

WORTH_TRYING = 1.05
"""How much a draft must be worth to be tried, if it is as good as it may yet turn out to be."""

RECENT_KEEP = 0.95

CAUTION = 0.8
"""Of what a copy is expected to give: of many guesses the best one looks better than it is."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Take the first `tokens` of what was looked up."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the draft model for up to `tokens`, and wait for it."""

    tokens: int
    min_probability: float = 0.0


@dataclass(frozen=True, slots=True)
class RunAhead:
    """Let the draft model go on beside the target; verify once `least` candidates are there."""

    least: int


Plan = Plain | Copy | Ask | RunAhead


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a round could do: candidates that there is room for, the match that was found, whether
    the draft model can be asked now, and the candidates that it has ready."""

    room: int
    match: Match | None
    model_ready: bool
    in_hand: int = 0


class Planner:
    """Of one answer."""

    def __init__(
        self, figures: AnswerFigures, *, most_draft_tokens: int, may_run_ahead: bool
    ) -> None:
        """`most_draft_tokens`: 0 if there is no draft model."""
        self._figures = figures
        self._most = most_draft_tokens
        self._may_run_ahead = may_run_ahead
        self._steady: Steady = Plain()
        self._promise = _Promise()
        self._rate = self._expected = 0.0
        self._drafted = False
        self._rounds = 0
        self._after_plain = False
        self._probing = False
        self._probes, self._begun = 0, False
        self._recent_tokens = self._recent_seconds = 0.0
        self._replan()

    @property
    def wants_model(self) -> bool:
        """Whether the draft model should be got ready."""
        return self._most > 0 and (not isinstance(self._steady, Plain) or self._probe_is_due)

    @property
    def pays(self) -> bool:
        """Whether drafting by the model is expected to pay, as far as it is known."""
        return self._most > 0 and not isinstance(self._steady, Plain)

    def opened(self) -> None:
        """The draft model is being got ready."""
        if not self.pays:
            # All that share the target's passes are slowed by it.
            self._figures.pair.probes.begin(OPENING_STEPS * self._figures.sessions)
            self._probes, self._begun = PROBES_OF_ANSWER, True

    def closed(self) -> None:
        """The answer is over."""
        if self._begun:
            self._figures.pair.probes.end()
            self._begun = False

    def plan(self, outlook: Outlook) -> Plan:
        """For the next round."""
        plan = self._planned(outlook)
        self._drafted = isinstance(plan, Ask | RunAhead)
        return plan

    def _planned(self, outlook: Outlook) -> Plan:
        every = REPLANNED_EVERY if self.pays else PLAIN_REPLANNED_EVERY
        if self._rounds % every == 0:
            self._replan()
        self._rounds += 1
        pair = self._figures.pair
        pair.rounds_since_plain += 1
        self._probing = False
        if outlook.room <= 0:
            return Plain()
        if not pair.plain_steps or pair.rounds_since_plain > self._control_every:
            return Plain()
        return self._best(outlook)

    def done(self, tokens: int, seconds: float, *, plain: bool) -> None:
        """The round that was planned last took so long and committed so many tokens."""
        figures = self._figures
        steps = seconds / figures.verification().plain
        if self._probing:
            figures.pair.probes.spend((steps - tokens) * figures.sessions)
        figures.pair.probes.passed(steps)
        self._after_plain = plain
        if plain:
            figures.pair.rounds_since_plain = 0
        if not isinstance(self._steady, Ahead):
            # What is not tried cannot show that it has become better.
            figures.pair.ahead_kept.pull(1.0, FORGIVEN)
        elif self._drafted:
            self._promise.kept(self._kept(self._steady), tokens, seconds * self._expected)
        self._recent_tokens = RECENT_KEEP * self._recent_tokens + tokens
        self._recent_seconds = RECENT_KEEP * self._recent_seconds + seconds

    @property
    def _control_every(self) -> int:
        pair, ahead = self._figures.pair, isinstance(self._steady, Ahead)
        unknown = pair.plain_steps < ENOUGH_CONTROLS or (
            ahead and pair.slowed.evidence < ENOUGH_CONTROLS
        )
        if unknown:
            return FIRST_CONTROL_EVERY
        # Where much is gained a control costs as much, and could not change what is chosen. Where
        # sessions share passes, what one adds to them must be known well.
        gain = self._worth * self._figures.verification().plain / self._figures.sessions
        return int(CONTROL_EVERY * min(max(1.0, gain), MOST_GAIN))

    def _replan(self) -> None:
        figures = self._figures
        # What a draft token takes is learnt from rounds that wait for it.
        may_run_ahead = self._may_run_ahead and figures.pair.draft_step_seconds.known
        ways = steady_ways(figures, figures.acceptance, self._most, may_run_ahead)
        ways = [Rated(way.way, way.rate * self._kept(way.way).value) for way in ways]
        kind = type(self._steady)
        stay = max((way for way in ways if isinstance(way.way, kind)), key=_rate)
        best = max(ways, key=_rate)
        if isinstance(best.way, Ahead) and kind is not Ahead:
            # It drafts far more than is used, and less is known of what that costs.
            waiting = max((way for way in ways if not isinstance(way.way, Ahead)), key=_rate)
            best = best if best.rate > BETTER * waiting.rate else waiting
        taken = best if best.rate > BETTER * stay.rate else stay
        self._steady, self._rate = taken.way, taken.rate
        if self.pays:
            figures.pair.probes.paid()
        self._expected = taken.rate / self._kept(taken.way).value

    def _kept(self, way: Steady) -> DecayedMean:
        return self._figures.pair.ahead_kept if isinstance(way, Ahead) else ALWAYS_KEPT

    @property
    def _worth(self) -> float:
        """Tokens that a second would give otherwise."""
        if not self._recent_seconds:
            return self._rate
        recent = self._recent_tokens / self._recent_seconds
        return max(self._rate, min(recent, 2 * self._rate))

    def _best(self, outlook: Outlook) -> Plan:
        worth = self._worth
        plain = 1 - worth * self._figures.verification().plain
        plan, value = self._by_model(outlook, worth) or (Plain(), plain)
        if outlook.match is not None:
            tokens, gain = self._copied(outlook.match, outlook.room, worth)
            if gain > value:
                plan, value = Copy(tokens), gain
        # Right after a plain step, beside which its verification can be measured.
        fresh = self._after_plain and outlook.model_ready
        if isinstance(plan, Plain) and self._probes and fresh:
            self._probing, self._probes = True, self._probes - 1
            return Ask(min(PROBE_TOKENS, self._most))
        return plan

    def _by_model(self, outlook: Outlook, worth: float) -> tuple[Plan, float] | None:
        if not outlook.model_ready:
            return None
        match self._steady:
            case Plain():
                return None
            case Sequential(tokens):
                value = self._sequential_value(tokens, worth)
                return Ask(tokens, self._least_probability(worth)), value
            case Ahead(least):
                return RunAhead(least), self._ahead_value(max(least, outlook.in_hand), worth)

    def _sequential_value(self, tokens: int, worth: float) -> float:
        figures = self._figures
        return sequential_rounds(figures, figures.acceptance, tokens)[-1].value(worth)

    def _ahead_value(self, candidates: int, worth: float) -> float:
        expected = expected_accepted(self._figures.acceptance, candidates)[-1]
        return 1 + expected - worth * self._figures.verification().seconds(candidates)

    def _copied(self, match: Match, room: int, worth: float) -> tuple[int, float]:
        """How many tokens of a match are best taken, and what that is worth."""
        most = min(len(match.ids), room)
        chances = self._figures.copied(match.length)
        return best_length(self._figures, chances, most, worth)

    def _least_probability(self, worth: float) -> float:
        """Below it the tokens that may follow are not worth the draft's next step."""
        step = self._figures.draft_step_seconds
        return self._figures.pair.confidence.threshold(min(1.0, worth * step))

    @property
    def _probe_is_due(self) -> bool:
        pair = self._figures.pair
        if pair.probes.full and self._most:
            # Long enough ago that all may be otherwise.
            return True
        if not self._most or not pair.probes.allows:
            return False
        hope = Known(
            (min(MOST_HOPE, pair.acceptance.at(0) + 1 / sqrt(1 + pair.acceptance.evidence)),)
        )
        hoped = steady_ways(self._figures, hope, min(8, self._most), self._may_run_ahead)
        return max(way.rate for way in hoped) > WORTH_TRYING * hoped[0].rate


ALWAYS_KEPT = DecayedMean(1.0, 0.0)


class _Promise:
    """What the rounds of a steady way gave, by what was expected of them."""

    def __init__(self) -> None:
        self._rounds, self._tokens, self._expected = 0, 0.0, 0.0

    def kept(self, mean: DecayedMean, tokens: float, expected: float) -> None:
        """A round of it."""
        self._rounds, self._tokens = self._rounds + 1, self._tokens + tokens
        self._expected += expected
        if self._rounds == PROMISE_ROUNDS and self._expected:
            mean.observe(self._tokens / self._expected)
            self._rounds, self._tokens, self._expected = 0, 0.0, 0.0


def _rate(rated: Rated) -> float:
    return rated.rate


def best_length(
    figures: AnswerFigures, chances: Expected, most: int, worth: float
) -> tuple[int, float]:
    """Of candidates that cost nothing but their verification: how many are best, and what they are
    worth in tokens."""
    expected = expected_accepted(chances, most)
    verification = figures.verification()
    values = (
        (1 + CAUTION * expected[tokens] - worth * verification.seconds(tokens), tokens)
        for tokens in range(1, most + 1)
    )
    value, tokens = max(values, default=(float("-inf"), 0))
    return tokens, value
