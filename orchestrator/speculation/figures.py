"""What is known of a pair of models: what steps cost, and how often guesses are right. Pure.

`PairFigures` are shared by all answers of a pair; `AnswerFigures` are those of one answer, and
begin with what the pair did lately. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.speculation.acceptance import Acceptance, Expected, From, Known
from orchestrator.speculation.confidence import Confidence
from orchestrator.speculation.decayed import DecayedMean
from orchestrator.speculation.pass_cost import PassCost
from orchestrator.speculation.probes import ProbeBudget

FIRST_ACCEPTANCE = 0.6
FIRST_LOOKUP_ACCEPTANCE = (0.23, 0.5, 0.65, 0.7, 0.75, 0.8, 0.8, 0.8, 0.9)
"""After a match of 1, 2, ... tokens: chat models that explain, copy and write code (measured)."""

GROWN = 5
"""A match that grows by right guesses is never as good a sign as one that stood there as long."""

PAIR_KEEP = 0.998
ANSWER_KEEP = 0.985
PAIR_WEIGHT = 10.0
ANSWER_WEIGHT = 8.0
"""Examined candidates that outweigh what was known before, of the pair and of the answer."""

TIME_KEEP = 0.9
PAIR_TIME_KEEP = 0.97
KNOWN_WEIGHT = 1.0
"""Of the pair's pace beside what one answer sees: contexts differ in length."""

PLAIN_WEIGHT, INFERRED_WEIGHT = 1.0, 0.1
"""Of a plain step's time that is seen, and of one that is inferred from a pass with candidates:
what these cost is not known well enough, but a context that grows must be followed."""

ENOUGH_CONTROLS = 4.0
"""Comparisons of the target's pace, by itself and beside the draft, that tell the difference."""

PROMISE_KEEP, PROMISE_WEIGHT = 0.9, 8.0
"""Of blocks of rounds that are held against what was expected of them; the weight is that of the
expectation."""

FRESH = 16
"""Rounds after a plain step in which others are compared with it: a context grows, and steps with
it."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A verification as it was seen: `seconds` around it, of which the model ran `forward_seconds`
    in `passes`; the last pass ran `tokens` of `sessions`."""

    seconds: float
    forward_seconds: float
    passes: int
    sessions: int
    tokens: int


@dataclass(frozen=True, slots=True)
class DraftedTokens:
    """A proposal as it was seen: `seconds` around it and its conversion, of which the model ran
    `forward_seconds` in `passes`. Of `asked` tokens `drafted` came, and gave `candidates`; `lost`
    of the tokens had no part in them."""

    seconds: float
    forward_seconds: float
    passes: int
    asked: int
    drafted: int
    candidates: int
    lost: int


@dataclass(frozen=True, slots=True)
class Verification:
    """Seconds of a plain step, and what is added by having candidates at all, and by each."""

    plain: float
    any: float
    each: float

    def seconds(self, candidates: float) -> float:
        """With so many."""
        return self.plain + (self.any + self.each * candidates if candidates > 0 else 0.0)


class PairFigures:
    """Of one target and one draft, or of a target alone."""

    def __init__(self, first_draft_cost: float) -> None:
        """`first_draft_cost`: a step of the draft by one of the target, as far as it can be told
        from the models."""
        self.first_draft_cost = first_draft_cost
        self.pass_cost = PassCost()
        self.step_seconds = DecayedMean(0.05, PAIR_TIME_KEEP)
        self.plain_steps = 0
        self.rounds_since_plain = 0
        self.outside_seconds = DecayedMean(0.001, PAIR_TIME_KEEP)
        self.draft_step_seconds = DecayedMean(0.0, PAIR_TIME_KEEP)
        self.draft_outside_seconds = DecayedMean(0.001, PAIR_TIME_KEEP)
        self.ahead_outside_seconds = DecayedMean(0.001, PAIR_TIME_KEEP)
        """What it takes besides its steps until a draft that begins anew has its first candidates:
        it is told to stop what it drafts, and tells of its tokens while it goes on."""
        self.slowed = DecayedMean(1.0, PAIR_TIME_KEEP)
        """By how much the target is slower while the draft runs: where they share cores, say."""
        self.ahead_kept = DecayedMean(1.0, PROMISE_KEEP, PROMISE_WEIGHT)
        """What drafting beside the target gave, by what was expected of it: what the formula does
        not know of, such as cores that are shared."""
        self.lost = DecayedMean(0.5, PAIR_TIME_KEEP)
        self.per_draft_token = DecayedMean(1.0, PAIR_TIME_KEEP)
        self.acceptance = Acceptance(Known((FIRST_ACCEPTANCE,)), PAIR_WEIGHT, PAIR_KEEP)
        self.going_on = Acceptance(Known((1.0,)), 1.0, PAIR_KEEP)
        """By draft tokens: whether the draft is sure enough to go on."""
        self.copied = Acceptance(Known(FIRST_LOOKUP_ACCEPTANCE), PAIR_WEIGHT, PAIR_KEEP)
        """By the length of the match, from 1 on; a match grows with each token that is right."""
        self.confidence = Confidence()
        self.probes = ProbeBudget()


class AnswerFigures:
    """Of one answer; each observation goes to the pair as well."""

    def __init__(self, pair: PairFigures) -> None:
        self.pair = pair
        known = KNOWN_WEIGHT if pair.step_seconds.known else 0.0
        self._step = DecayedMean(pair.step_seconds.value, TIME_KEEP, known)
        self._outside = DecayedMean(pair.outside_seconds.value, TIME_KEEP)
        self._draft_step = DecayedMean(pair.draft_step_seconds.value, TIME_KEEP)
        self.acceptance = Acceptance(pair.acceptance, ANSWER_WEIGHT, ANSWER_KEEP)
        self._copied = Acceptance(pair.copied, ANSWER_WEIGHT, ANSWER_KEEP)
        self._plain = DecayedMean(0.0, TIME_KEEP)
        self._beside = DecayedMean(0.0, TIME_KEEP)
        self._since_plain = 0
        self.sessions = 1
        """That share a pass of the target."""

    @property
    def step_seconds(self) -> float:
        """A pass of the target in which each session runs one token."""
        return self._step.value

    @property
    def outside_seconds(self) -> float:
        """What a verification takes besides its pass."""
        return self._outside.value

    @property
    def draft_step_seconds(self) -> float:
        """One token of the draft."""
        if self._draft_step.known:
            return self._draft_step.value
        if self.pair.draft_step_seconds.known:
            return self.pair.draft_step_seconds.value
        return self.step_seconds * self.pair.first_draft_cost

    def verification(self) -> Verification:
        """What a round takes of the target. All that share a pass wait for it: counted as if each
        of them had as many candidates."""
        cost, sessions = self.pair.pass_cost, self.sessions
        one_more = self.step_seconds / cost.of(sessions)
        return Verification(
            plain=self.outside_seconds + self.step_seconds,
            any=one_more * cost.jump if sessions == 1 else 0.0,
            each=one_more * cost.slope * sessions,
        )

    def verified(self, seen: Verified, *, beside_draft: bool) -> None:
        """`beside_draft`: the draft was running meanwhile."""
        if seen.passes != 1 or not seen.sessions:
            return
        self.sessions = seen.sessions
        outside = max(0.0, seen.seconds - seen.forward_seconds)
        self._outside.observe(outside)
        self.pair.outside_seconds.observe(outside)
        if beside_draft and self.pair.step_seconds.known:
            self._beside_draft(seen)
        else:
            self._by_itself(seen)

    def _by_itself(self, seen: Verified) -> None:
        cost, plain = self.pair.pass_cost, seen.tokens == seen.sessions
        each_one = cost.of(seen.sessions)
        step = seen.forward_seconds * each_one / cost.of(seen.tokens)
        weight = PLAIN_WEIGHT if plain else INFERRED_WEIGHT
        if self._beside.known:
            self.pair.slowed.observe(self._beside.value / step)
            self._beside = DecayedMean(step, TIME_KEEP)
        elif not plain:
            self._learn_cost(seen, seen.forward_seconds)
        self._step.observe(step, weight)
        self.pair.step_seconds.observe(step / each_one, weight)
        if plain:
            self.pair.plain_steps += 1
            self._plain.observe(step)
            self._since_plain = 0

    def _beside_draft(self, seen: Verified) -> None:
        cost, slowed = self.pair.pass_cost, self.pair.slowed
        step = seen.forward_seconds * cost.of(seen.sessions) / cost.of(seen.tokens)
        self._beside.observe(step)
        if slowed.evidence >= ENOUGH_CONTROLS:
            self._learn_cost(seen, seen.forward_seconds / slowed.value)
        self._step.observe(step / slowed.value, INFERRED_WEIGHT)

    def _learn_cost(self, seen: Verified, seconds: float) -> None:
        """Compared with plain steps that were seen lately: beside what is inferred by the cost
        itself, an error would feed on itself."""
        self._since_plain += 1
        if self._plain.known and self._since_plain <= FRESH:
            self.pair.pass_cost.observe(seen.tokens, seconds / self._plain.value, seen.sessions)

    def drafted(self, seen: DraftedTokens) -> None:
        """A proposal that was waited for."""
        pair = self.pair
        if seen.passes:
            step = seen.forward_seconds / seen.passes
            self._draft_step.observe(step)
            pair.draft_step_seconds.observe(step)
        pair.draft_outside_seconds.observe(max(0.0, seen.seconds - seen.forward_seconds))
        pair.going_on.observe(seen.drafted + (seen.drafted < seen.asked), seen.drafted)
        if seen.drafted:
            pair.lost.observe(seen.lost)
        if seen.drafted > seen.lost:
            pair.per_draft_token.observe(seen.candidates / (seen.drafted - seen.lost))

    def began_ahead(self, seconds: float, candidates: int) -> None:
        """A draft that runs ahead began anew, and these candidates were there after that time."""
        pair = self.pair
        steps = candidates / max(0.1, pair.per_draft_token.value)
        outside = seconds - steps * self.draft_step_seconds
        pair.ahead_outside_seconds.observe(max(0.0, outside))

    def model_examined(self, examined: int, accepted: int) -> None:
        """Of candidates of the draft model."""
        self.acceptance.observe(examined, accepted)
        self.pair.acceptance.observe(examined, accepted)

    def copied(self, match_length: int) -> Expected:
        """The chances of tokens that followed a match of that length."""
        return From(self._copied, match_length - 1, GROWN)

    def copies_examined(self, match_length: int, examined: int, accepted: int) -> None:
        """Of tokens that followed a match of that length."""
        self._copied.observe(examined, accepted, match_length - 1, GROWN)
        self.pair.copied.observe(examined, accepted, match_length - 1, GROWN)
