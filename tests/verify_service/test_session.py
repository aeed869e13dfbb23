from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench import Bench
from tests.cached_model import IDS, CachedModel, continuation
from tests.fakes import FakeModel, count_up
from tests.verify_service.commands import a_session, opening, version
from uag_common.decoding import Constraint, ConstraintKind, Decoding, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError
from uag_common.model import Model, TokenChooser
from verify_service.session import VerifySession

KEYS = (PrefixReuse(), PrefixReuse(b"a"), PrefixReuse(b"a", keep=True), PrefixReuse(b"b", True))

CONSTRAINED = Decoding(constraint=Constraint(ConstraintKind.REGEX, ("a",)))


def new_session(model: Model) -> VerifySession:
    return a_session(Bench(model))


async def test_commands_out_of_order_are_refused() -> None:
    session = new_session(FakeModel())
    with pytest.raises(InvalidRequestError, match="opened first"):
        await session.verify(version(()), ())
    await session.open(opening((1, 2, 3)))
    with pytest.raises(InvalidRequestError, match="open already"):
        await session.open(opening((1, 2, 3)))
    done = await session.verify(version((1, 2, 3, 4)), (5,))
    assert (len(done.value.accepted), done.value.next.id) == (1, 6)


async def test_a_refused_command_runs_nothing() -> None:
    model = FakeModel()
    session = new_session(model)
    with pytest.raises(InvalidRequestError):
        await session.open(opening((1,), answer_start=2))
    assert (model.sequences, model.choosers) == ([], [])
    session.close()


async def test_a_constraint_is_compiled_by_neither_the_loop_nor_the_worker() -> None:
    seen: list[int] = []

    class Slow(FakeModel):
        def new_chooser(self, decoding: Decoding, answer_start: int) -> TokenChooser:  # type: ignore[override]
            seen.append(threading.get_ident())
            return super().new_chooser(decoding, answer_start)

    used = Bench(Slow())
    await a_session(used).open(opening((1,), decoding=CONSTRAINED))
    model_thread = await used.worker.run(threading.get_ident)
    assert seen[0] not in (threading.get_ident(), model_thread)


@pytest.mark.parametrize("before", ["open", "verify"])
async def test_a_session_that_is_dropped_in_a_step_ends_after_it(before: str) -> None:
    release, running = threading.Event(), threading.Event()

    def slow(context: Sequence[int]) -> int:
        if len(context) == (3 if before == "open" else 4):
            running.set()
            release.wait(10)
        return count_up(context)

    used = Bench(FakeModel(slow))
    session = a_session(used)
    prefix = PrefixReuse(b"a", keep=True)

    async def use() -> None:
        try:
            await session.open(opening((1, 2, 3), prefix=prefix))
            await session.verify(version((1, 2, 3, 4)), ())
        finally:
            session.close()

    using = asyncio.ensure_future(use())
    await asyncio.to_thread(running.wait, 10)
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    release.set()
    await used.rest()
    assert used.batcher.pending == 0
    # The step was finished before the session's end: what it has cached is kept.
    assert used.prefixes.kept_bytes == (300 if before == "open" else 400)


async def test_an_ended_session_holds_no_cache() -> None:
    model = CachedModel()
    used = Bench(model)
    session = a_session(used)
    await session.open(opening((1, 2, 3)))
    assert model.blocks.used == 2
    session.close()
    await used.rest()
    # Not even while somebody, such as a traceback, holds the session.
    assert model.blocks.used == 0


@dataclass
class Answer:
    """One answer of a schedule, and how far it is."""

    prompt: list[int]
    prefix: PrefixReuse
    seed: int
    guesses: list[list[int]]
    got: list[int] = field(default_factory=list)

    async def run(self, session: VerifySession, turn: asyncio.Semaphore) -> None:
        decoding = Decoding(sampling=Sampling(temperature=1.0, seed=self.seed))
        start = await session.open(opening(self.prompt, decoding=decoding, prefix=self.prefix))
        self.got.append(start.value.first.id)
        for guess in self.guesses:
            async with turn:
                committed = version((*self.prompt, *self.got))
                done = (await session.verify(committed, guess)).value
            self.got += [choice.id for choice in (*done.accepted, done.next)]
        session.close()


ids = st.integers(1, IDS - 1)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.builds(
            Answer,
            # Short and of few ids: many of them begin alike.
            prompt=st.lists(ids, min_size=1, max_size=6),
            prefix=st.sampled_from(KEYS),
            seed=st.integers(0, 2),
            guesses=st.lists(st.lists(ids, max_size=3), max_size=4),
        ),
        max_size=8,
    ),
    st.integers(1, 8),
    st.sampled_from([0, 700, 10**6]),
    # Hardly more than the longest of them takes alone: most caches are given up again and again.
    st.sampled_from([14, 20, 1000]),
)
def test_sessions_that_share_get_what_each_gets_alone(
    answers: list[Answer], at_once: int, cache_bytes: int, blocks: int
) -> None:
    used = Bench(CachedModel(blocks), cache_bytes)

    async def run_all() -> None:
        turn = asyncio.Semaphore(at_once)
        sessions = [(answer, a_session(used)) for answer in answers]
        await asyncio.gather(*(answer.run(session, turn) for answer, session in sessions))
        await used.rest()

    asyncio.run(run_all())
    for answer in answers:
        count = len(answer.got)
        assert count >= len(answer.guesses) + 1
        start = len(answer.prompt)
        assert answer.got == continuation(answer.prompt, count, start, answer.seed)
        answer.got.clear()
    assert used.prefixes.kept_bytes <= cache_bytes
    while used.prefixes.drop_one():
        pass
    assert used.model.blocks.used == 0
    used.worker.close()
