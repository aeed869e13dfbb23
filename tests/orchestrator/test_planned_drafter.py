"""The drafter that follows a plan: who is asked, when the model is got ready, what is learnt."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from orchestrator import growing_lookup
from orchestrator.drafter import Guess, Verdict
from orchestrator.events import TokenSource
from orchestrator.model_drafter import ModelDrafter
from orchestrator.planned_drafter import Bounds, PlannedDrafter
from orchestrator.sessions import ExchangeTime
from orchestrator.speculation.figures import AnswerFigures, PairFigures, Verified
from orchestrator.speculation.lookup import Lookup
from tests.orchestrator.held_session import PROMPT, HeldSession, new_model
from tests.speculation.world import World, planned_answers
from tests.unseen import unseen_observation
from uag_common.batching.timing import StepTime
from uag_common.errors import OverloadedError, PeerUnavailableError, UagError

BOUNDS = Bounds(draft_tokens=8, lookup_tokens=16, min_probability=None, run_ahead=False)
STEP = 0.03
REPEATED = (*range(20, 40), *range(20, 32))
"""Its last twelve ids stood before."""


def paying(*, ahead: bool = False) -> PairFigures:
    """A pair that is known to pay."""
    pair = PairFigures(0.1)
    for _ in planned_answers(World(lambda _: 0.8, 0.1), 3, 1, ahead=ahead, pair=pair):
        pass
    return pair


def timed() -> PairFigures:
    """A pair of which nothing is known but the pace of the target."""
    pair = PairFigures(1.0)
    figures = AnswerFigures(pair)
    for _ in range(8):
        figures.verified(Verified(STEP + 0.001, STEP, 1, 1, 1), beside_draft=False)
    return pair


def dear() -> PairFigures:
    """A pair that cannot pay, and may not be tried now."""
    pair = PairFigures(4.0)
    pair.probes.spend(20.0)
    return pair


@dataclass
class Bench:
    """A drafter, and the model that it may get."""

    pair: PairFigures
    bounds: Bounds = BOUNDS
    prompt: Sequence[int] = PROMPT
    lost: UagError | None = None
    """What the sessions of the model answer with."""
    preparation: UagError | None = None
    model: bool = True
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    prepared: int = 0
    round: int = 0

    def __post_init__(self) -> None:
        self._model, self.sessions = new_model(lost=self.lost)
        self.gate.set()
        self.drafter = PlannedDrafter(
            self.prompt,
            self.bounds,
            self.pair,
            self._prepare if self.model else None,
            unseen_observation(),
            None if self.model else "no draft model",
        )

    async def _prepare(self) -> ModelDrafter:
        self.prepared += 1
        await self.gate.wait()
        if self.preparation is not None:
            raise self.preparation
        return self._model

    @property
    def session(self) -> HeldSession:
        return self.sessions[-1]

    async def propose(self, room: int = 100) -> Guess:
        self.round += 1
        async with asyncio.timeout(5):
            guess = await self.drafter.propose(self.round, room)
        await settled()
        return guess

    def take(self, guess: Guess, accepted: int, *committed: int) -> None:
        """The target has accepted so many, and commits these."""
        tokens = 1 + len(guess.ids)
        step = StepTime(forward_seconds=STEP, passes=1, sessions=1, tokens=tokens)
        self.drafter.learn(Verdict(len(guess.ids), accepted, ExchangeTime(STEP + 0.001, step)))
        self.drafter.commit(committed)


async def settled() -> None:
    """What was begun is under way."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_model_that_pays_is_got_ready_before_the_first_round() -> None:
    bench = Bench(paying())
    bench.drafter.start()
    await settled()
    assert bench.prepared == 1
    # While the target reads the prompt, the draft does too.
    assert bench.session.opened == PROMPT
    guess = await bench.propose()
    assert guess.source is TokenSource.DRAFT
    assert guess.ids[:2] == (10, 11)
    bench.drafter.close()
    assert bench.session.closed


async def test_a_model_that_cannot_pay_is_not_got_ready_until_it_may_be_tried() -> None:
    bench = Bench(dear())
    bench.drafter.start()
    for number in range(20):
        guess = await bench.propose()
        assert guess == Guess()
        bench.take(guess, 0, 50 + number)
    assert bench.prepared == 0
    bench.pair.probes.passed(1e6)
    await bench.propose()
    assert bench.prepared == 1
    bench.drafter.close()


@pytest.mark.parametrize("bounds", [replace(BOUNDS, draft_tokens=0), BOUNDS])
async def test_without_draft_tokens_or_without_a_model_none_is_asked(bounds: Bounds) -> None:
    bench = Bench(paying(), bounds, model=bounds is not BOUNDS)
    bench.drafter.start()
    for _ in range(10):
        assert await bench.propose() == Guess()
    assert bench.prepared == 0
    assert (bench.drafter.degraded is None) == bench.model
    bench.drafter.close()


async def test_where_there_is_no_model_it_is_told_why_and_text_is_still_looked_up() -> None:
    bench = Bench(timed(), prompt=REPEATED, model=False)
    assert bench.drafter.degraded is not None
    assert bench.drafter.degraded.reason == "no draft model"
    guess = await bench.propose()
    assert guess.source is TokenSource.LOOKUP
    assert guess.ids[:3] == (32, 33, 34)


async def test_what_is_committed_while_the_model_is_got_ready_reaches_it() -> None:
    bench = Bench(paying())
    bench.gate.clear()
    bench.drafter.start()
    for ids in ((5, 6), (7,)):
        guess = await bench.propose()
        assert guess == Guess()
        bench.take(guess, 0, *ids)
    bench.gate.set()
    await settled()
    assert bench.session.opened == (*PROMPT, 5, 6, 7)
    bench.drafter.commit((8,))
    assert (await bench.propose()).ids
    assert bench.session.asked[0].append_ids == (8,)
    assert bench.prepared == 1
    bench.drafter.close()


async def test_a_copy_goes_first_where_it_is_worth_more() -> None:
    bench = Bench(paying(), prompt=REPEATED)
    bench.drafter.start()
    await settled()
    for _ in range(2):
        guess = await bench.propose()
        assert guess.source is TokenSource.LOOKUP
    assert guess.ids == (*range(32, 40), *range(20, 28))
    assert bench.session.asked == []
    bench.drafter.close()


async def test_no_more_than_there_is_room_for() -> None:
    copies, drafts = Bench(paying(), prompt=REPEATED), Bench(paying())
    for bench in (copies, drafts):
        bench.drafter.start()
        await settled()
        assert len((await bench.propose(room=1)).ids) == 1
        assert await bench.propose(room=0) == Guess()
        bench.drafter.close()


@pytest.mark.parametrize("given", [0.0, 0.35])
async def test_a_probability_that_the_request_gives_is_not_planned(given: float) -> None:
    pair = paying()
    for _ in range(200):
        pair.confidence.observe(0.05, accepted=False)
    asked, planned = Bench(pair, replace(BOUNDS, min_probability=given)), Bench(pair)
    for bench in (asked, planned):
        bench.drafter.start()
        await settled()
        await bench.propose()
        bench.drafter.close()
    assert asked.session.asked[0].min_probability == given
    assert planned.session.asked[0].min_probability not in (None, given)


async def test_a_preparation_that_fails_ends_drafting_and_not_the_answer() -> None:
    bench = Bench(paying(), prompt=REPEATED, preparation=OverloadedError("too many prompts"))
    bench.drafter.start()
    await settled()
    for _ in range(5):
        assert (await bench.propose()).source is TokenSource.LOOKUP
    degraded = bench.drafter.degraded
    assert degraded is not None
    assert degraded.reason == "too many prompts"
    assert bench.prepared == 1
    assert bench.sessions == []
    bench.drafter.close()


async def test_a_model_that_is_lost_ends_drafting_and_not_the_answer() -> None:
    bench = Bench(paying(), lost=PeerUnavailableError("gone"))
    bench.drafter.start()
    await settled()
    for number in range(5):
        guess = await bench.propose()
        assert guess == Guess()
        bench.take(guess, 0, 50 + number)
    degraded = bench.drafter.degraded
    assert degraded is not None
    assert (degraded.reason, degraded.since_round) == ("gone", 1)
    assert len(bench.session.asked) == 1
    bench.drafter.close()


async def test_what_becomes_of_guesses_is_learnt() -> None:
    model, copy = Bench(paying()), Bench(timed(), prompt=REPEATED, model=False)
    model.drafter.start()
    await settled()
    before = model.pair.acceptance.at(0)
    for _ in range(40):
        guess = await model.propose()
        model.take(guess, 0, 99)
    assert model.pair.acceptance.at(0) < before
    # The session says 0.9 of each token.
    assert model.pair.confidence.threshold(0.93) == 1.0
    model.drafter.close()
    before = copy.pair.copied.at(11)
    guess = await copy.propose()
    copy.take(guess, len(guess.ids), *guess.ids, 99)
    assert copy.pair.copied.at(11) > before
    assert copy.pair.step_seconds.value == pytest.approx(STEP, rel=0.5)


async def test_a_draft_that_runs_ahead_has_candidates_at_once_and_pauses_for_a_plain_step() -> None:
    bench = Bench(paying(ahead=True), replace(BOUNDS, run_ahead=True))
    bench.drafter.start()
    await settled()
    asking = asyncio.ensure_future(bench.propose())
    await settled()
    assert bench.session.asked == []
    bench.session.say(10, 11, 12, 13, 14, 15, 16, 17, 18)
    guess = await asking
    assert guess == Guess(tuple(range(10, 19)))
    bench.take(guess, 9, *guess.ids, 19)
    bench.session.say(*range(19, 30))
    assert (await bench.propose()).ids == tuple(range(20, 30))
    assert len(bench.session.commands) == 1
    # No room: a plain step, beside which the draft does not run.
    assert await bench.propose(room=0) == Guess()
    assert bench.session.commands[-1].max_tokens == 0
    bench.drafter.close()
    assert bench.session.closed
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("failure", [None, OverloadedError("too late")])
async def test_closing_leaves_nothing_of_a_preparation(failure: UagError | None) -> None:
    """Whether it still runs, or has ended and nobody has looked."""
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: lost.append(told))
    bench = Bench(paying(), preparation=failure)
    if failure is None:
        bench.gate.clear()
    bench.drafter.start()
    await settled()
    bench.drafter.close()
    await settled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    del bench
    gc.collect()
    assert lost == []


async def test_the_prompt_is_entered_beside_the_targets_prefill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered = list[int]()

    class Noted(Lookup):
        def __init__(self, ids: Sequence[int]) -> None:
            entered.append(len(ids))
            super().__init__(ids)

    monkeypatch.setattr(growing_lookup, "Lookup", Noted)
    bench = Bench(timed(), prompt=REPEATED, model=False)
    bench.drafter.start()
    # The target is asked first.
    assert not entered
    await asyncio.sleep(0)
    assert entered == [len(REPEATED)]
    assert (await bench.drafter.propose(1, 9)).ids
    assert len(entered) == 1
    left = Bench(timed(), prompt=REPEATED, model=False)
    left.drafter.start()
    left.drafter.close()
    await asyncio.sleep(0)
    assert len(entered) == 1
