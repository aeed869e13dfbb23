"""Many sessions on one model without weights, whose caches tell when they are wrong."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence

import pytest

from tests.bench import Bench, Seen
from tests.cached_model import BLOCK_TOKENS, CachedLogits, CachedModel, continuation
from tests.fakes import FakeModel
from tests.verify_service.commands import a_session, opening, version
from uag_common.batching import room
from uag_common.batching.batcher import Batcher
from uag_common.batching.job import Opening
from uag_common.batching.queue_bound import QueueBound
from uag_common.batching.timing import Timed
from uag_common.decoding import Decoding, PrefixReuse, Sampling
from uag_common.errors import OverloadedError
from uag_common.model import Forward, Part, Step, TokenSequence
from uag_common.worker import Worker
from verify_service.session import VerifySession


class Gate:
    """A model that waits before each pass until it may run."""

    def __init__(self, model: CachedModel) -> None:
        self.model = model
        self.arrived, self.may_run = threading.Semaphore(0), threading.Semaphore(0)
        run = model.run

        def gated(parts: Sequence[Part]) -> Sequence[CachedLogits]:
            self.arrived.release()
            self.may_run.acquire(timeout=10)
            return run(parts)

        model.run = gated  # type: ignore[method-assign]

    async def next_pass(self) -> None:
        """A pass is about to run."""
        await asyncio.to_thread(self.arrived.acquire, timeout=10)

    def open(self) -> None:
        """Whatever comes may run."""
        self.may_run.release(10_000)


def walk(sequence: TokenSequence, tokens: int, passes: int = 1) -> Callable[[], Step[int]]:
    """A step that runs so many tokens at once, so many times."""

    def step() -> Step[int]:
        for _ in range(passes):
            sequence.extend([1] * tokens)
            yield Forward(sequence, 1)
        return len(sequence.ids)

    return step


async def test_steps_that_wait_share_a_pass() -> None:
    model = CachedModel()
    gate, used = Gate(model), Bench(model)
    sessions = [used.batcher.session() for _ in range(5)]
    steps = [walk(model.new_sequence(), 3) for _ in sessions]
    running = [
        asyncio.ensure_future(session.run(step, "verify"))
        for session, step in zip(sessions, steps, strict=True)
    ]
    await gate.next_pass()
    await asyncio.sleep(0.05)
    gate.open()
    assert [done.value for done in await asyncio.gather(*running)] == [3] * 5
    assert sum(model.passes) == 5
    assert max(model.passes) >= 4
    used.worker.close()


async def test_one_that_comes_joins_those_that_run() -> None:
    model = CachedModel()
    gate, used = Gate(model), Bench(model)
    long = asyncio.ensure_future(
        used.batcher.session().run(walk(model.new_sequence(), 1, passes=4), "propose")
    )
    await gate.next_pass()
    short = asyncio.ensure_future(
        used.batcher.session().run(walk(model.new_sequence(), 1), "propose")
    )
    await asyncio.sleep(0.05)
    gate.open()
    await asyncio.gather(long, short)
    assert model.passes == [1, 2, 1, 1]
    used.worker.close()


async def test_what_fails_fails_alone() -> None:
    model = CachedModel()
    run, used = model.run, Bench(model)
    bad = model.new_sequence()

    def breaking(parts: Sequence[Part]) -> Sequence[CachedLogits]:
        if any(part.sequence is bad for part in parts):
            raise RuntimeError("the device is on fire")
        return run(parts)

    model.run = breaking  # type: ignore[method-assign]
    gate = Gate(model)
    steps = [walk(sequence, 2) for sequence in (model.new_sequence(), bad, model.new_sequence())]
    running = [asyncio.ensure_future(used.batcher.session().run(step, "verify")) for step in steps]
    await gate.next_pass()
    gate.open()
    results = await asyncio.gather(*running, return_exceptions=True)
    assert [isinstance(result, Timed) for result in results] == [True, False, True]
    assert "on fire" in str(results[1])
    assert used.batcher.pending == 0
    used.worker.close()


async def test_a_bug_of_the_batcher_lets_nobody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    used = Bench(CachedModel())
    monkeypatch.setattr("uag_common.batching.batcher.plan", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        await used.batcher.session().run(walk(used.model.new_sequence(), 1), "verify")
    used.worker.close()


async def test_a_step_whose_caller_is_gone_ends_before_its_next_pass() -> None:
    model = CachedModel()
    gate, used = Gate(model), Bench(model)
    sequence = model.new_sequence()
    step = used.batcher.session().run(walk(sequence, 1, passes=9), "propose")
    running = asyncio.ensure_future(step)
    await gate.next_pass()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.open()
    await used.rest()
    assert (sequence.cached, used.batcher.pending) == (1, 0)
    used.worker.close()


async def test_nobody_waits_for_a_session_that_ended_between_two_turns() -> None:
    model = CachedModel()
    gate, used = Gate(model), Bench(model)
    session, sequence = used.batcher.session(), model.new_sequence()
    running = asyncio.ensure_future(session.run(walk(sequence, 1, passes=9), "propose"))
    await gate.next_pass()
    between, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        between.set()
        go_on.wait(10)

    used.worker.post(pause, urgent=False)
    gate.open()
    await asyncio.to_thread(between.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    session.end(sequence.drop_cache)
    go_on.set()
    await used.rest()
    await used.rest()
    assert used.batcher._returns._sessions == {}
    used.worker.close()


async def test_what_is_told_of_steps_and_passes() -> None:
    model, worker, seen = CachedModel(), Worker("test"), Seen()
    gate = Gate(model)
    batcher = Batcher(worker, model, lambda: False, seen)
    first = asyncio.ensure_future(batcher.session().run(walk(model.new_sequence(), 5), "open"))
    await gate.next_pass()
    others = [
        asyncio.ensure_future(batcher.session().run(walk(model.new_sequence(), 2), "verify"))
        for _ in range(3)
    ]
    await asyncio.sleep(0.05)
    others[2].cancel()
    await asyncio.sleep(0.01)
    gate.open()
    done = await first
    await asyncio.gather(*others[:2])
    # A pass is told of after its steps.
    await worker.run(lambda: None)
    assert seen.passes == [(1, 5), (2, 4)]
    assert [command for command, _ in seen.steps] == ["open", "verify", "verify"]
    assert seen.drops == ["verify"]
    for _, passes in seen.steps[1:]:
        (only,) = passes
        assert (only.sessions, only.tokens) == (2, 4)
        assert only.queued <= only.began <= only.ended
        assert only.began - only.queued > 0.04
    assert done.time.forward_seconds > 0.04
    worker.close()


async def test_of_a_full_pass_the_greater_priority_has_the_first_place() -> None:
    model = CachedModel(most_parts=1)
    gate, used = Gate(model), Bench(model)
    order: list[int] = []

    def step(priority: int) -> Callable[[], Step[None]]:
        sequence = model.new_sequence()
        sequence.extend([1])

        def run() -> Step[None]:
            yield Forward(sequence, 1)
            order.append(priority)

        return run

    running = [asyncio.ensure_future(used.batcher.session().run(step(99), "verify"))]
    await gate.next_pass()
    running += [
        asyncio.ensure_future(used.batcher.session(priority).run(step(priority), "verify"))
        for priority in (0, 5, -5, 7)
    ]
    await asyncio.sleep(0.05)
    gate.open()
    await asyncio.gather(*running)
    assert order == [99, 7, 5, 0, -5]
    used.worker.close()


async def test_too_many_that_wait_are_told_when_to_come_back() -> None:
    model, worker = CachedModel(blocks=4), Worker("test")
    seen = Seen()
    batcher = Batcher(worker, model, lambda: False, seen, QueueBound(sessions=2, seconds=60))
    holder = batcher.session()
    sequence = model.new_sequence()
    await holder.run(walk(sequence, 6), "open", Opening(6))
    waiting = [
        asyncio.ensure_future(
            batcher.session().run(walk(model.new_sequence(), 6), "open", Opening(6))
        )
        for _ in range(2)
    ]
    await asyncio.sleep(0.05)
    assert batcher.waiting == 2
    with pytest.raises(OverloadedError, match="2 sessions wait"):
        await batcher.session().run(walk(model.new_sequence(), 6), "open", Opening(6))
    # The holder goes on: it is not refused, nor does anybody take its cache.
    await holder.run(walk(sequence, 1), "verify")
    assert (sequence.cached, seen.evictions) == (7, 0)
    holder.end(sequence.drop_cache)
    await waiting[0]
    waiting[1].cancel()
    worker.close()


async def test_who_waits_for_too_long_is_refused() -> None:
    model, worker = CachedModel(blocks=4), Worker("test")
    batcher = Batcher(worker, model, lambda: False, bound=QueueBound(seconds=0.2))
    await batcher.session().run(walk(model.new_sequence(), 6), "open", Opening(6))
    with pytest.raises(OverloadedError, match=r"within 0\.2 s"):
        await batcher.session().run(walk(model.new_sequence(), 6), "open", Opening(6))
    worker.close()


async def test_equal_prompts_at_the_same_time_are_computed_once() -> None:
    model = CachedModel()
    model.description = FakeModel().description
    gate, used = Gate(model), Bench(model)
    prompt = [1 + n % 3 for n in range(36)]
    prefix = PrefixReuse(b"a")
    sessions = [a_session(used) for _ in range(4)]
    openings = [
        asyncio.ensure_future(
            session.open(
                opening(
                    prompt,
                    decoding=Decoding(Sampling(temperature=1.0, seed=seed)),
                    prefix=prefix,
                )
            )
        )
        for seed, session in enumerate(sessions)
    ]
    await gate.next_pass()
    await asyncio.sleep(0.05)
    gate.open()
    opened = [each.value for each in await asyncio.gather(*openings)]
    assert [each.cached_tokens for each in opened] == [0, 35, 35, 35]
    assert sum(model.runs) == 36 + 3
    assert [each.first.id for each in opened] == [
        continuation(prompt, 1, 36, seed)[0] for seed in range(4)
    ]
    used.worker.close()


async def test_nobody_waits_for_a_prompt_that_was_computed_and_given_up() -> None:
    """Its session may be idle for ever."""
    model = CachedModel(blocks=64)
    used = Bench(model)
    prompt, prefix = [1, 2, 3] * 12, PrefixReuse(b"a")
    idle, other = a_session(used), a_session(used)
    await idle.open(opening(prompt, prefix=prefix))
    (tenant,) = used.batcher._tenants
    assert tenant.sequence is not None
    tenant.sequence.drop_cache()
    async with asyncio.timeout(5):
        opened = await other.open(opening(prompt, prefix=prefix))
    assert opened.value.cached_tokens == 0
    idle.close()
    other.close()
    used.worker.close()


async def test_sessions_of_other_keys_do_not_wait_for_each_other() -> None:
    model = CachedModel()
    gate, used = Gate(model), Bench(model)
    prompt = [1 + n % 3 for n in range(36)]
    openings = [
        asyncio.ensure_future(a_session(used).open(opening(prompt, prefix=PrefixReuse(key))))
        for key in (b"a", b"b", b"")
    ]
    await gate.next_pass()
    await asyncio.sleep(0.05)
    gate.open()
    opened = [each.value for each in await asyncio.gather(*openings)]
    assert [each.cached_tokens for each in opened] == [0, 0, 0]
    used.worker.close()


class Crowd:
    """Sessions that come, go on, leave in the middle and end, all at random."""

    def __init__(self, seed: int, blocks: int, most_parts: int) -> None:
        self.dice = random.Random(seed)
        self.model = CachedModel(blocks, most_parts)
        self.used = Bench(self.model, self.dice.choice([0, 1500, 10**6]))
        self.right = 0

    async def one(self, number: int) -> None:
        dice = random.Random(number * 7919 + self.dice.randrange(10**6))
        await asyncio.sleep(dice.random() * 0.05)
        prompt = [dice.randint(1, 3) for _ in range(dice.choice([1, 3, 12, 20]))]
        key = dice.choice([b"", b"a", b"b"])
        prefix = PrefixReuse(key, keep=bool(key) and dice.random() < 0.5)
        session = a_session(self.used)
        try:
            async with asyncio.timeout(dice.choice([0.01, 60, 60, 60])):
                await self._answer(session, prompt, prefix, dice)
        except TimeoutError:
            pass
        finally:
            session.close()

    async def _answer(
        self, session: VerifySession, prompt: list[int], prefix: PrefixReuse, dice: random.Random
    ) -> None:
        seed = dice.randint(0, 3)
        decoding = Decoding(Sampling(temperature=1.0, seed=seed))
        command = opening(prompt, decoding=decoding, prefix=prefix, priority=dice.randint(-5, 5))
        got = [(await session.open(command)).value.first.id]
        for _ in range(dice.randint(0, 5)):
            wanted = continuation([*prompt, *got], 4, len(prompt), seed)
            guess = [n if dice.random() < 0.7 else 1 for n in wanted[: dice.randint(0, 3)]]
            done = (await session.verify(version((*prompt, *got)), guess)).value
            got += [choice.id for choice in (*done.accepted, done.next)]
        assert got == continuation(prompt, len(got), len(prompt), seed)
        self.right += 1


@pytest.mark.parametrize("most_parts", [1, 3, 64])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("idle_seconds", [room.IDLE_SECONDS, -1.0])
async def test_a_crowd_in_little_memory_loses_nothing(
    seed: int, most_parts: int, idle_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hardly more memory than one session takes: caches are given up and computed anew; those of
    sessions between two steps too, where they count as idle at once."""
    monkeypatch.setattr(room, "IDLE_SECONDS", idle_seconds)
    crowd = Crowd(seed, blocks=22, most_parts=most_parts)
    await asyncio.gather(*(crowd.one(number) for number in range(40)))
    await crowd.used.rest()
    assert crowd.right >= 20
    assert crowd.used.batcher.pending == crowd.used.batcher.waiting == 0
    while crowd.used.prefixes.drop_one():
        pass
    assert crowd.model.blocks.used == 0
    crowd.used.worker.close()


async def test_caches_are_given_up_where_memory_is_short() -> None:
    """Two sessions grow to more than there is room for: the younger one gives way, and goes on."""
    model = CachedModel(blocks=16)
    used = Bench(model)
    prompts = ([1, 2, 3] * 4, [3, 2, 1] * 4)
    sessions = [a_session(used) for _ in prompts]

    async def answer(session: VerifySession, prompt: list[int]) -> list[int]:
        got = [(await session.open(opening(prompt))).value.first.id]
        for _ in range(15):
            got.append((await session.verify(version((*prompt, *got)), ())).value.next.id)
        return got

    answers = await asyncio.gather(*map(answer, sessions, prompts))
    for prompt, got in zip(prompts, answers, strict=True):
        assert got == continuation(prompt, len(got), len(prompt), 0)
    assert used.seen.evictions > 0
    assert model.blocks.total * BLOCK_TOKENS < 2 * (len(prompts[0]) + 15)
    used.worker.close()
