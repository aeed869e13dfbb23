from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draft_service.drafter import ProposalEnd
from draft_service.session import DraftSession
from tests.bench import Bench
from tests.cached_model import IDS, CachedModel, continuation
from tests.draft_service.commands import DRAWN, opening, proposal
from tests.fakes import CONTEXT_LENGTH, EOS, FakeModel, count_up
from uag_common.decoding import NoisePosition, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError, PromptTooLongError, StaleContextError
from uag_common.model import Model

CONTEXT = (1, 2, 3)
SHARED = PrefixReuse(b"a")
KEPT = PrefixReuse(b"a", keep=True)
KEYS = (PrefixReuse(), SHARED, KEPT, PrefixReuse(b"b", keep=True))


def a_session(bench: Bench) -> DraftSession:
    return DraftSession(bench.model, bench.batcher, bench.prefixes)


def new_session(model: Model) -> DraftSession:
    return a_session(Bench(model))


async def opened(model: Model) -> DraftSession:
    session = new_session(model)
    await session.open(opening(CONTEXT))
    return session


async def test_a_proposal_goes_on_from_the_context() -> None:
    model = FakeModel()
    done = await (await opened(model)).propose(proposal(CONTEXT))
    assert [token.id for token in done.tokens] == [4, 5, 6]
    assert done.end is ProposalEnd.LENGTH
    assert all(0 < token.probability < 1 for token in done.tokens)
    assert model.sequence.fed == [(1, 2), (3,), (4,), (5,)]


async def test_rollback_keeps_what_is_right_and_runs_at_least_one_token() -> None:
    model = FakeModel()
    session = await opened(model)
    await session.propose(proposal(CONTEXT))
    done = await session.propose(proposal((1, 2, 3, 4, 5), max_tokens=1))
    assert [token.id for token in done.tokens] == [6]
    assert model.sequence.fed[-1] == (5,)
    done = await session.propose(proposal((1, 2, 3, 4), (7,), max_tokens=2))
    assert [token.id for token in done.tokens] == [8, 9]
    assert model.sequence.ids == [1, 2, 3, 4, 7, 8, 9]
    assert model.sequence.fed[-2:] == [(7,), (8,)]


async def test_a_proposal_ends_at_its_eos() -> None:
    model = FakeModel(lambda context: EOS if context[-1] == 5 else count_up(context))
    done = await (await opened(model)).propose(proposal(CONTEXT, max_tokens=9))
    assert [token.id for token in done.tokens] == [4, 5, EOS]
    assert done.end is ProposalEnd.EOS


async def test_a_proposal_ends_at_low_probability_without_that_token() -> None:
    model = FakeModel()
    done = await (await opened(model)).propose(proposal(CONTEXT, min_probability=0.95))
    assert (done.tokens, done.end) == ((), ProposalEnd.LOW_PROBABILITY)
    assert model.sequence.ids == [1, 2, 3]
    assert model.chooser.answer == []


async def test_a_proposal_ends_where_the_context_is_full() -> None:
    model = FakeModel()
    append = [4] * (CONTEXT_LENGTH - 5)
    done = await (await opened(model)).propose(proposal(CONTEXT, append, max_tokens=9))
    assert len(done.tokens) == 2
    assert done.end is ProposalEnd.CONTEXT_LIMIT


async def test_each_proposal_is_drawn_from_where_it_stands() -> None:
    model, place = FakeModel(), NoisePosition(11, 2)
    session = new_session(model)
    await session.open(opening(CONTEXT, sampling=DRAWN))
    await session.propose(proposal(CONTEXT, max_tokens=2, position=place))
    assert model.chooser.decoding.sampling == DRAWN
    assert (model.chooser.position, model.chooser.answer) == (place, [4, 5])
    with pytest.raises(InvalidRequestError, match=r"propose\.position"):
        await session.propose(proposal(CONTEXT))


async def test_a_stale_command_changes_nothing() -> None:
    model = FakeModel()
    session = await opened(model)
    for stale in (proposal((1, 2, 3, 4)), proposal((1, 5))):
        with pytest.raises(StaleContextError):
            await session.propose(stale)
    assert model.sequence.ids == [1, 2, 3]


async def test_a_refused_command_runs_nothing() -> None:
    model = FakeModel()
    session = new_session(model)
    with pytest.raises(InvalidRequestError, match="opened first"):
        await session.propose(proposal(CONTEXT))
    with pytest.raises(PromptTooLongError):
        await session.open(opening((1,) * (CONTEXT_LENGTH + 1)))
    assert model.sequences == []
    await session.open(opening((1,)))
    with pytest.raises(InvalidRequestError, match="open already"):
        await session.open(opening(CONTEXT))
    with pytest.raises(InvalidRequestError, match="from 0 to"):
        await session.propose(proposal((1,), max_tokens=65))
    assert model.sequence.fed == []


async def test_a_session_begins_with_what_another_has_run() -> None:
    model = CachedModel()
    used = Bench(model, 0)
    first, second = a_session(used), a_session(used)
    assert (await first.open(opening((1, 2, 3, 1), prefix=SHARED))).value == 0
    await first.propose(proposal((1, 2, 3, 1)))
    model.runs.clear()
    assert (await second.open(opening((1, 2, 3, 1), prefix=SHARED))).value == 3
    assert model.runs == []
    assert (await a_session(used).open(opening((1, 2, 2), prefix=SHARED))).value == 2


async def test_what_is_rolled_back_is_no_longer_shared() -> None:
    used = Bench(CachedModel(), 0)
    first = a_session(used)
    await first.open(opening((1, 2, 3, 1, 2), prefix=SHARED))
    await first.propose(proposal((1, 2), (2, 2), max_tokens=1))
    for context in ((1, 2, 3, 1, 2), (1, 2, 2, 2, 2)):
        assert (await a_session(used).open(opening(context, prefix=SHARED))).value == 2


async def test_a_later_session_begins_with_what_was_kept_drafts_included() -> None:
    used = Bench(FakeModel())
    first = a_session(used)
    await first.open(opening(CONTEXT, prefix=KEPT))
    await first.propose(proposal(CONTEXT))
    first.close()
    second = a_session(used)
    # The last drafted token was never run.
    assert (await second.open(opening((1, 2, 3, 4, 5, 6, 7), prefix=SHARED))).value == 5
    second.close()
    await used.rest()
    assert used.prefixes.kept_bytes == 500


async def test_what_was_not_run_any_more_is_not_kept() -> None:
    used = Bench(FakeModel())
    session = a_session(used)
    await session.open(opening(CONTEXT, prefix=KEPT))
    full = proposal(CONTEXT[:1], [7] * (CONTEXT_LENGTH - 1))
    assert (await session.propose(full)).end is ProposalEnd.CONTEXT_LIMIT
    session.close()
    later = a_session(used)
    assert (await later.open(opening((1, 7, 7), prefix=SHARED))).value == 1


async def test_an_ended_session_holds_no_cache() -> None:
    model = CachedModel()
    used = Bench(model, 0)
    session = a_session(used)
    await session.open(opening(CONTEXT))
    assert model.blocks.used == 1
    session.close()
    await used.rest()
    # Not even while somebody, such as a traceback, holds the session.
    assert model.blocks.used == 0


async def test_a_proposal_that_is_dropped_stops_within_a_step() -> None:
    running, release = threading.Event(), threading.Event()

    def slow(context: Sequence[int]) -> int:
        if len(context) == 5:
            running.set()
            release.wait(10)
        return count_up(context)

    model = FakeModel(slow)
    used = Bench(model, 0)
    session = a_session(used)
    await session.open(opening(CONTEXT))
    sequence = model.sequence
    proposing = asyncio.ensure_future(session.propose(proposal(CONTEXT, max_tokens=30)))
    await asyncio.to_thread(running.wait, 10)
    proposing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await proposing
    session.close()
    release.set()
    await used.rest()
    assert sequence.ids == [1, 2, 3, 4, 5, 6]
    assert used.batcher.pending == 0


@dataclass
class Drafting:
    """One session of a schedule: how much each proposal keeps, appends and drafts."""

    context: list[int]
    prefix: PrefixReuse
    seed: int
    rounds: list[tuple[int, list[int], int]]

    async def run(self, session: DraftSession, turn: asyncio.Semaphore) -> None:
        sampling = Sampling(temperature=1.0, seed=self.seed)
        # All of the context is answer, so that a rollback never goes behind its start.
        await session.open(
            opening(self.context, answer_start=0, sampling=sampling, prefix=self.prefix)
        )
        context = list(self.context)
        for keep, append, count in self.rounds:
            kept = context[: max(1, keep)]
            command = proposal(kept, append, max_tokens=count, position=NoisePosition())
            async with turn:
                done = await session.propose(command)
            context = [*kept, *append]
            drafted = [token.id for token in done.tokens]
            assert drafted == continuation(context, count, 0, self.seed)
            context += drafted
        session.close()


ids: st.SearchStrategy[int] = st.integers(1, IDS - 1)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            Drafting,
            context=st.lists(ids, min_size=1, max_size=6),
            prefix=st.sampled_from(KEYS),
            seed=st.integers(0, 2),
            rounds=st.lists(
                st.tuples(st.integers(1, 9), st.lists(ids, max_size=2), st.integers(1, 3)),
                max_size=4,
            ),
        ),
        max_size=8,
    ),
    st.integers(1, 8),
    st.sampled_from([0, 700, 10**6]),
    st.sampled_from([14, 20, 1000]),
)
def test_sessions_that_share_draft_what_each_drafts_alone(
    sessions: Sequence[Drafting], at_once: int, cache_bytes: int, blocks: int
) -> None:
    used = Bench(CachedModel(blocks), cache_bytes)

    async def run_all() -> None:
        turn = asyncio.Semaphore(at_once)
        await asyncio.gather(*(item.run(a_session(used), turn) for item in sessions))
        await used.rest()

    asyncio.run(run_all())
    assert used.prefixes.kept_bytes <= cache_bytes
    while used.prefixes.drop_one():
        pass
    assert used.model.blocks.used == 0
    used.worker.close()
