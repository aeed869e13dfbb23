"""Proposals whose tokens are told of as they come, and that the next command supersedes."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import grpc
import pytest

from draft_service.drafter import ProposalEnd
from draft_service.drafting import Drafting, DraftToken
from draft_service.session import DraftSession, Proposal
from orchestrator.draft_client import DraftClient, DraftOptions
from orchestrator.running_draft import RunningDraft
from orchestrator.sessions import DraftCommand
from tests.bench import Bench, bench
from tests.draft_service.commands import opening, proposal
from tests.draft_service.test_servicer import add_service, ask, begin
from tests.draft_service.test_servicer import opening as opening_message
from tests.draft_service.test_servicer import proposal as proposal_message
from tests.fakes import EOS, FakeModel, count_up
from tests.model_server import ModelServer, model_server
from uag.draft.v1 import draft_pb2 as pb
from uag.model.v1 import model_pb2
from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition, PrefixReuse, Sampling
from uag_common.errors import PeerRefusedError, PeerUnavailableError, StaleContextError

CONTEXT = (1, 2, 3)
REST = model_pb2.GetLoadResponse(max_sessions=4, kv_blocks=1000)


class Stepper:
    """Counts up, each step only when it is let; `stepping` is set while a step waits for that."""

    def __init__(self) -> None:
        self._let: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stepping = threading.Semaphore(0)

    def __call__(self, context: Sequence[int]) -> int:
        self._stepping.release()
        self._let.get(timeout=10)
        return count_up(context)

    def let(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._let.put(None)

    async def stepping(self) -> None:
        """Until one more step has begun."""
        assert await asyncio.to_thread(self._stepping.acquire, timeout=10)


def never() -> bool:
    return False


def ids_of(tokens: Sequence[DraftToken]) -> list[int]:
    return [token.id for token in tokens]


async def open_session(used: Bench) -> DraftSession:
    session = DraftSession(used.model, used.batcher, used.prefixes)
    await session.open(opening(CONTEXT))
    return session


Stream = AsyncGenerator[tuple[DraftToken, ...] | Proposal, None]


async def tokens_of(stream: Stream) -> list[int]:
    async with asyncio.timeout(5):
        told = await anext(stream)
    assert not isinstance(told, Proposal)
    return ids_of(told)


async def rest_of(stream: Stream) -> Proposal:
    """All tokens that are not told yet, and the end."""
    tokens: list[DraftToken] = []
    async with aclosing(stream):
        async for each in stream:
            if isinstance(each, Proposal):
                return Proposal((*tokens, *each.tokens), each.end, each.time, each.rolled_back)
            tokens += each
    raise AssertionError("a stream without an end")


async def test_tokens_are_read_once_and_wake_their_reader() -> None:
    tokens = Drafting(never, asyncio.get_running_loop())
    for number in range(2):
        await asyncio.to_thread(tokens.append, DraftToken(number, 0.5))
    async with asyncio.timeout(5):
        await tokens.changed()
    assert ids_of(tokens.new()) == [0, 1]
    assert tokens.new() == ()
    assert len(tokens) == 2


async def test_each_token_is_told_of_before_the_next_one_is_drafted() -> None:
    stepper = Stepper()
    async with bench(FakeModel(stepper)) as used:
        session = await open_session(used)
        async with aclosing(session.stream(proposal(CONTEXT, max_tokens=3), never)) as stream:
            for expected in (4, 5):
                stepper.let()
                assert await tokens_of(stream) == [expected]
            stepper.let()
            # The last token may come by itself or with the end.
            done = await rest_of(stream)
        assert done.end is ProposalEnd.LENGTH
        assert ids_of(done.tokens) == [6]
        assert done.time.passes == 3


async def test_the_first_tokens_come_together() -> None:
    stepper = Stepper()
    async with bench(FakeModel(stepper)) as used:
        session = await open_session(used)
        command = replace(proposal(CONTEXT, max_tokens=5), first_tokens=3)
        async with aclosing(session.stream(command, never)) as stream:
            for _ in range(3):
                stepper.let()
            assert await tokens_of(stream) == [4, 5, 6]
            stepper.let()
            assert await tokens_of(stream) == [7]
            stepper.let()
            assert ids_of((await rest_of(stream)).tokens) == [8]


async def test_first_tokens_that_never_come_are_not_waited_for() -> None:
    async with bench(FakeModel(count_up)) as used:
        session = await open_session(used)
        command = replace(proposal(CONTEXT, max_tokens=2), first_tokens=9)
        async with aclosing(session.stream(command, never)) as stream:
            told = await anext(stream)
        assert isinstance(told, Proposal)
        assert ids_of(told.tokens) == [4, 5]


async def test_a_stream_says_what_a_proposal_says() -> None:
    model = FakeModel(lambda context: EOS if context[-1] == 7 else count_up(context))
    async with bench(model) as used:
        session = await open_session(used)
        whole = await session.propose(proposal(CONTEXT, max_tokens=9))
        told, end = list[DraftToken](), None
        async with aclosing(session.stream(proposal(CONTEXT, max_tokens=9), never)) as stream:
            async for each in stream:
                if isinstance(each, Proposal):
                    end = each
                    told += each.tokens
                else:
                    told += each
        assert tuple(told) == whole.tokens
        assert end is not None
        assert (end.end, end.rolled_back) == (ProposalEnd.EOS, 5)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_proposal_ends_before_its_next_token_once_it_is_superseded(stream: bool) -> None:
    stepper, superseded = Stepper(), threading.Event()
    model = FakeModel(stepper)
    async with bench(model) as used:
        session = await open_session(used)
        command = proposal(CONTEXT, max_tokens=30)
        running = asyncio.ensure_future(
            rest_of(session.stream(command, superseded.is_set))
            if stream
            else session.propose(command, superseded.is_set)
        )
        for _ in range(2):
            await stepper.stepping()
            stepper.let()
        await stepper.stepping()
        superseded.set()
        stepper.let()
        done = await running
        assert done.end is ProposalEnd.SUPERSEDED
        assert ids_of(done.tokens) == [4, 5, 6]
        assert model.sequence.ids == [1, 2, 3, 4, 5, 6]


async def test_no_tokens_change_the_context_only() -> None:
    model = FakeModel()
    async with bench(model) as used:
        session = await open_session(used)
        await session.propose(proposal(CONTEXT, max_tokens=3))
        fed = len(model.sequence.fed)
        done = await session.propose(proposal((1, 2, 3, 4), (8,), max_tokens=0))
        assert (done.tokens, done.end, done.rolled_back) == ((), ProposalEnd.LENGTH, 2)
        assert done.time.passes == 0
        assert model.sequence.ids == [1, 2, 3, 4, 8]
        assert len(model.sequence.fed) == fed
        done = await session.propose(proposal((1, 2, 3, 4, 8), max_tokens=1))
        assert ids_of(done.tokens) == [9]


async def test_a_stream_that_is_refused_says_so() -> None:
    async with bench(FakeModel()) as used:
        session = await open_session(used)
        async with aclosing(session.stream(proposal((1, 9)), never)) as stream:
            with pytest.raises(StaleContextError):
                await anext(stream)


async def test_a_stream_that_is_left_stops_within_a_step() -> None:
    stepper = Stepper()
    model = FakeModel(stepper)
    async with bench(model) as used:
        session = await open_session(used)
        stream = session.stream(proposal(CONTEXT, max_tokens=30), never)
        stepper.let()
        assert await tokens_of(stream) == [4]
        for _ in range(2):
            await stepper.stepping()
        ids = model.sequence.ids
        await stream.aclose()
        session.close()
        # The batcher is told of it before the step is over.
        await asyncio.sleep(0.01)
        stepper.let()
        async with asyncio.timeout(5):
            while used.batcher.pending:
                await used.rest()
        assert ids == [1, 2, 3, 4, 5]


async def read(call: object) -> pb.Proposed:
    assert isinstance(call, grpc.aio.StreamStreamCall)
    async with asyncio.timeout(5):
        answer = await call.read()
    assert isinstance(answer, pb.SessionResponse)
    return answer.proposed


async def test_messages_come_one_by_one_and_the_last_has_end_and_time() -> None:
    stepper = Stepper()
    async with model_server(FakeModel(stepper), add_service) as server:
        call = begin(server)
        await ask(call, opening_message(CONTEXT))
        request = proposal_message(CONTEXT, 3, stream=True, min_probability=0.0)
        await call.write(request)
        for expected in (4, 5):
            stepper.let()
            told = await read(call)
            assert [token.id for token in told.tokens] == [expected]
            assert (told.round, told.end) == (3, pb.PROPOSAL_END_UNSPECIFIED)
            assert not told.HasField("time")
        stepper.let()
        # The last token may come by itself or with the end.
        last = await read(call)
        ids = [token.id for token in last.tokens]
        if not last.end:
            last = await read(call)
            ids += [token.id for token in last.tokens]
        assert ids == [6]
        assert last.end == pb.PROPOSAL_END_LENGTH
        assert (last.time.passes, last.time.sessions) == (3, 1)
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("stream", [True, False])
async def test_the_next_command_supersedes_what_runs(stream: bool) -> None:
    stepper = Stepper()
    async with model_server(FakeModel(stepper), add_service) as server:
        call = begin(server)
        await ask(call, opening_message(CONTEXT))
        await call.write(proposal_message(CONTEXT, 30, stream=stream, min_probability=0.0))
        for _ in range(2):
            await stepper.stepping()
            stepper.let()
        await stepper.stepping()
        await call.write(proposal_message((1, 2, 3, 4), 1, append_ids=[8], min_probability=0.0))
        # The service has read it once it has answered another call that came later.
        await server.load()
        stepper.let()
        ids, end = list[int](), pb.PROPOSAL_END_UNSPECIFIED
        while end == pb.PROPOSAL_END_UNSPECIFIED:
            told = await read(call)
            ids += [token.id for token in told.tokens]
            end = told.end
        assert (ids, end) == ([4, 5, 6], pb.PROPOSAL_END_SUPERSEDED)
        stepper.let()
        told = await read(call)
        assert [token.id for token in told.tokens] == [9]
        call.cancel()
        await server.resting()


async def test_a_client_that_leaves_a_stream_frees_its_session() -> None:
    stepper = Stepper()
    async with model_server(FakeModel(stepper), add_service) as server:
        call = begin(server)
        await ask(call, opening_message(CONTEXT))
        await call.write(proposal_message(CONTEXT, 30, stream=True, min_probability=0.0))
        stepper.let()
        await read(call)
        await stepper.stepping()
        await stepper.stepping()
        call.cancel()
        await server.load_once(lambda load: not load.open_sessions)
        stepper.let()
        assert await server.resting() == REST


async def test_a_client_that_writes_no_more_gets_all_of_its_stream() -> None:
    """The end of the commands is no command: what runs is no less wanted."""
    stepper = Stepper()
    async with model_server(FakeModel(stepper), add_service) as server:
        call = begin(server)
        await ask(call, opening_message(CONTEXT))
        await call.write(proposal_message(CONTEXT, 2, stream=False, min_probability=0.0))
        await stepper.stepping()
        stepper.let(2)
        told = await read(call)
        assert [token.id for token in told.tokens] == [4, 5]
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK
        assert await server.resting() == REST


@asynccontextmanager
async def a_client(server: ModelServer, model: FakeModel) -> AsyncIterator[DraftClient]:
    options = DraftOptions(Sampling(), PrefixReuse(), 0)
    client = DraftClient("127.0.0.1:1", server.channel, model.description, 5.0, options)
    try:
        await client.open(CONTEXT, len(CONTEXT))
        yield client
    finally:
        client.close()


def command(
    kept: Sequence[int], max_tokens: int, append: Sequence[int] = (), number: int = 1
) -> DraftCommand:
    version = ContextVersion.of(kept, len(kept))
    return DraftCommand(number, len(kept), version, tuple(append), max_tokens, NoisePosition(), 0.0)


async def more(draft: RunningDraft, tokens: int) -> None:
    async with asyncio.timeout(5):
        while len(draft.ids) < tokens and not draft.ended:
            await draft.more()


async def ended(draft: RunningDraft) -> None:
    async with asyncio.timeout(5):
        while not draft.ended:
            await draft.more()


async def test_the_client_fills_a_running_draft() -> None:
    stepper = Stepper()
    model = FakeModel(stepper)
    async with model_server(model, add_service) as server, a_client(server, model) as client:
        draft = client.run(command(CONTEXT, 3))
        for expected in ([4], [4, 5]):
            stepper.let()
            await more(draft, len(expected))
            assert draft.ids == expected
            assert not draft.ended
        stepper.let()
        await ended(draft)
        assert draft.ids == [4, 5, 6]
        assert draft.probabilities == pytest.approx([0.905] * 3, abs=0.001)
        assert draft.time is not None
        assert draft.time.passes == 3


async def test_a_proposal_ends_what_ran_before_it() -> None:
    stepper = Stepper()
    model = FakeModel(stepper)
    async with model_server(model, add_service) as server, a_client(server, model) as client:
        draft = client.run(command(CONTEXT, 30))
        stepper.let()
        await more(draft, 1)
        for _ in range(2):
            await stepper.stepping()
        proposing = asyncio.ensure_future(client.propose(command((1, 2, 3, 4), 2, (8,), 2)))
        await asyncio.sleep(0.05)
        stepper.let(3)
        async with asyncio.timeout(5):
            drafted = await proposing
        assert drafted.ids == (9, 1)
        assert draft.ended
        assert draft.ids == [4, 5]


async def test_a_draft_that_runs_ends_what_ran_before_it() -> None:
    stepper = Stepper()
    model = FakeModel(stepper)
    async with model_server(model, add_service) as server, a_client(server, model) as client:
        first = client.run(command(CONTEXT, 30))
        stepper.let()
        await more(first, 1)
        for _ in range(2):
            await stepper.stepping()
        second = client.run(command((1, 2, 3, 4), 30, (8,), 2))
        third = client.run(command((1, 2, 3, 4), 0, (), 3))
        await asyncio.sleep(0.05)
        stepper.let(40)
        for draft in (first, second, third):
            await ended(draft)
            assert draft.error is None
        assert (first.ids, third.ids) == ([4, 5], [])
        # The steps are so short that some of the second may be done before the third is read.
        assert second.ids == [9, *(n % 9 + 1 for n in range(29))][: len(second.ids)]


async def test_a_running_draft_tells_that_its_service_refuses() -> None:
    model = FakeModel()
    async with model_server(model, add_service) as server, a_client(server, model) as client:
        stale = client.run(command((1, 9), 3))
        await ended(stale)
        assert isinstance(stale.error, StaleContextError)
        later = client.run(command(CONTEXT, 3))
        await ended(later)
        assert later.error is not None
        with pytest.raises((PeerRefusedError, PeerUnavailableError, StaleContextError)):
            await client.propose(command(CONTEXT, 3))


async def test_a_running_draft_tells_that_its_service_is_gone() -> None:
    stepper = Stepper()
    model = FakeModel(stepper)
    async with model_server(model, add_service, idle_seconds=0.2) as server:
        options = DraftOptions(Sampling(), PrefixReuse(), 0)
        client = DraftClient("127.0.0.1:1", server.channel, model.description, 0.3, options)
        await client.open(CONTEXT, len(CONTEXT))
        draft = client.run(command(CONTEXT, 3))
        await ended(draft)
        assert isinstance(draft.error, PeerUnavailableError)
        stepper.let(3)
        client.close()
        await server.resting()


async def test_closing_the_client_leaves_nothing() -> None:
    stepper = Stepper()
    model = FakeModel(stepper)
    async with model_server(model, add_service) as server:
        before = asyncio.all_tasks()
        async with a_client(server, model) as client:
            draft = client.run(command(CONTEXT, 30))
            stepper.let()
            await more(draft, 1)
        await server.load_once(lambda load: not load.open_sessions)
        stepper.let()
        assert await server.resting() == REST
        left = {task for task in asyncio.all_tasks() - before if "_run" in repr(task.get_coro())}
        assert not left
