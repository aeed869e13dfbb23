from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import grpc
import pytest

from tests.cached_model import CachedModel, continuation
from tests.fakes import FakeModel, count_up
from tests.model_server import ModelServer, model_server
from uag.model.v1 import model_pb2
from uag.verify.v1 import verify_pb2 as pb
from uag.verify.v1 import verify_pb2_grpc
from uag_common.context import ContextVersion
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_messages import encode_version
from verify_service.servicer import VerifyServicer

SHA256 = FakeModel().description.tokenizer_sha256
Call = grpc.aio.StreamStreamCall[pb.SessionRequest, pb.SessionResponse]


def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
    verify_pb2_grpc.add_VerifyServiceServicer_to_server(VerifyServicer(slot), server)


def begin(server: ModelServer) -> Call:
    call: Call = verify_pb2_grpc.VerifyServiceStub(server.channel).Session()
    return call


def opening(ids: Sequence[int], **options: object) -> pb.SessionRequest:
    message = pb.Open(prompt_ids=ids, tokenizer_sha256=SHA256, **options)  # type: ignore[arg-type]
    return pb.SessionRequest(open=message)


def verification(committed: Sequence[int], candidates: Sequence[int] = ()) -> pb.SessionRequest:
    version = encode_version(ContextVersion.of(committed, len(committed)))
    message = pb.Verify(round=3, committed=version, candidate_ids=candidates)
    return pb.SessionRequest(verify=message)


async def ask(call: Call, request: pb.SessionRequest) -> pb.SessionResponse:
    async with asyncio.timeout(5):
        await call.write(request)
        answer = await call.read()
    assert isinstance(answer, pb.SessionResponse)
    return answer


async def refusal(call: Call, *requests: pb.SessionRequest) -> tuple[grpc.StatusCode, str]:
    """How a call with these commands ends."""
    async with asyncio.timeout(5):
        for request in requests:
            await call.write(request)
        with suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:  # type: ignore[attr-defined]
                pass
        return await call.code(), await call.details()


async def test_a_session_from_its_start_to_its_end() -> None:
    async with model_server(FakeModel(), add_service) as server:
        call = begin(server)
        opened = (await ask(call, opening((1, 2, 3)))).opened
        assert opened == pb.Opened(first=pb.ChosenToken(id=4), time=opened.time)
        verified = (await ask(call, verification((1, 2, 3, 4), (5, 9)))).verified
        wanted = pb.Verified(round=3, accepted=1, next=pb.ChosenToken(id=6), time=verified.time)
        assert verified == wanted
        load = await server.load()
        assert (load.open_sessions, load.max_sessions, load.pending_steps) == (1, 4, 0)
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=4, kv_blocks=1000)


async def test_log_probabilities_come_if_asked_for() -> None:
    async with model_server(FakeModel(), add_service) as server:
        call = begin(server)
        opened = (await ask(call, opening((1, 2), top_logprobs=1, prompt_top_logprobs=0))).opened
        assert [(token.id, len(token.top)) for token in opened.prompt] == [(2, 0)]
        assert opened.first.HasField("logprob")
        verified = (await ask(call, verification((1, 2, 3), (4, 5, 9)))).verified
        told = [*verified.accepted_tokens, verified.next]
        assert [token.id for token in told] == [4, 5, 6]
        assert [token.logprob for token in told] == pytest.approx([-0.1, -0.2, -0.3])
        assert [[top.id for top in token.top] for token in told] == [[4], [5], [6]]
        call.cancel()


async def test_every_option_of_open_arrives() -> None:
    model = FakeModel()
    sampling = model_pb2.Sampling(temperature=0.5, top_k=0, seed=2**64 - 1, logit_bias={7: 1.5})
    async with model_server(model, add_service) as server:
        code, details = await refusal(begin(server), opening((1, 2), sampling=sampling))
        assert (code, "open.sampling.top_k" in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)
        sampling.top_k = 3
        constraint = model_pb2.Constraint(choice=model_pb2.Choices(texts=["a", "b"]))
        call = begin(server)
        await ask(
            call,
            opening(
                (1, 2, 3, 4),
                sampling=sampling,
                answer_start=2,
                min_new_tokens=5,
                end_ids=[0, 8],
                constraint=constraint,
                top_logprobs=0,
            ),
        )
        call.cancel()
    chooser, decoding = model.chooser, model.chooser.decoding
    assert (chooser.answer_start, chooser.answer) == (2, [3, 4, 5])
    assert (decoding.sampling.top_k, decoding.sampling.top_p) == (3, None)
    assert (decoding.sampling.seed, decoding.sampling.logit_bias) == (2**64 - 1, ((7, 1.5),))
    assert (decoding.min_new_tokens, decoding.end_ids) == (5, (0, 8))
    assert (decoding.constraint and decoding.constraint.texts) == ("a", "b")
    assert decoding.top_logprobs == 0


@pytest.mark.parametrize(
    ("requests", "code", "words"),
    [
        ([pb.SessionRequest()], grpc.StatusCode.INVALID_ARGUMENT, "must be `open` or `verify`"),
        ([verification((1,))], grpc.StatusCode.INVALID_ARGUMENT, "opened first"),
        ([opening(())], grpc.StatusCode.INVALID_ARGUMENT, "must not be empty"),
        ([opening((1,)), opening((1,))], grpc.StatusCode.INVALID_ARGUMENT, "open already"),
        ([opening((1,)), verification((9,))], grpc.StatusCode.FAILED_PRECONDITION, "meant for"),
        ([opening((1,) * 40)], grpc.StatusCode.OUT_OF_RANGE, "41 tokens"),
        (
            [opening((1,), constraint=model_pb2.Constraint())],
            grpc.StatusCode.INVALID_ARGUMENT,
            "open.constraint",
        ),
        (
            [pb.SessionRequest(open=pb.Open(prompt_ids=[1], tokenizer_sha256="00"))],
            grpc.StatusCode.FAILED_PRECONDITION,
            "describe the model anew",
        ),
    ],
)
async def test_a_refused_session_leaves_nothing(
    requests: Sequence[pb.SessionRequest], code: grpc.StatusCode, words: str
) -> None:
    async with model_server(FakeModel(), add_service) as server:
        ended, details = await refusal(begin(server), *requests)
        assert (ended, words in details) == (code, True), details
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=4, kv_blocks=1000)


async def test_one_session_too_many_is_refused_and_the_others_go_on() -> None:
    async with model_server(FakeModel(), add_service, max_sessions=2) as server:
        calls = [begin(server) for _ in range(2)]
        for call in calls:
            await ask(call, opening((1, 2, 3)))
        code, details = await refusal(begin(server))
        assert (code, "2 sessions" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
        for call in calls:
            assert (await ask(call, verification((1, 2, 3, 4)))).verified.next.id == 5
        calls.pop().cancel()
        await server.load_once(lambda load: load.open_sessions == 1)
        await ask(begin(server), opening((1, 2, 3)))


@pytest.mark.parametrize("opened", [False, True])
async def test_a_session_without_commands_ends(opened: bool) -> None:
    async with model_server(FakeModel(), add_service, idle_seconds=0.1) as server:
        call = begin(server)
        if opened:
            await ask(call, opening((1, 2, 3)))
        code, details = await refusal(call)
        assert (code, "no command" in details) == (grpc.StatusCode.DEADLINE_EXCEEDED, True)
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=4, kv_blocks=1000)


async def test_a_client_that_takes_no_answer_loses_its_session() -> None:
    """More than a connection holds on its way: the service waits until it is taken."""
    model, length = FakeModel(), 20_000
    model.description = replace(model.description, context_length=2 * length)
    async with model_server(model, add_service, idle_seconds=0.3) as server:
        call = begin(server)
        await call.write(opening([1] * length, prompt_top_logprobs=1))
        await server.load_once(lambda load: load.open_sessions == 1)
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=4, kv_blocks=1000)
        assert model.sequences[0].fed


async def test_a_client_that_leaves_at_any_moment_frees_its_session() -> None:
    release, running = threading.Event(), threading.Event()

    def slow(context: Sequence[int]) -> int:
        running.set()
        release.wait(5)
        return count_up(context)

    async with model_server(FakeModel(slow), add_service, max_sessions=9) as server:
        calls = [begin(server) for _ in range(9)]
        for call in calls:
            await call.write(opening((1, 2, 3)))
        await asyncio.to_thread(running.wait, 5)
        load = await server.load_once(lambda load: load.pending_steps == 9)
        assert load.open_sessions == 9
        for call in calls:
            call.cancel()
        # One step runs, and the ends of all sessions wait for it.
        load = await server.load_once(lambda load: not load.open_sessions)
        assert load.pending_steps >= 9
        release.set()
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=9, kv_blocks=1000)


async def test_many_cancels_leave_nothing() -> None:
    model = CachedModel()
    prefix = model_pb2.PrefixReuse(key=b"a")
    async with model_server(model, add_service, max_sessions=500) as server:

        async def use(number: int) -> None:
            call = begin(server)
            await call.write(opening((1, 2, 3), prefix=prefix))
            if number % 3:
                await call.read()
            if number % 3 == 2:
                committed = (1, 2, 3, *continuation((1, 2, 3), 1, 3, 0))
                await call.write(verification(committed, (1, 2)))
            await asyncio.sleep(0.001 * (number % 7))
            call.cancel()

        await asyncio.gather(*(use(number) for number in range(300)))
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=500, kv_blocks=1000)
    assert model.blocks.used == 0


async def test_what_is_kept_shows_in_the_load() -> None:
    prefix = model_pb2.PrefixReuse(key=b"a", keep=True)
    async with model_server(FakeModel(), add_service) as server:
        call = begin(server)
        await ask(call, opening((1, 2, 3), prefix=prefix))
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK
        load = await server.resting()
        assert (load.kept_prefixes, load.kept_prefix_bytes) == (1, 300)
        opened = (await ask(begin(server), opening((1, 2, 3, 4), prefix=prefix))).opened
        assert opened.cached_tokens == 3
