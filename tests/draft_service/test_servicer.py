from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
import pytest

from draft_service.servicer import DraftServicer
from tests.fakes import FakeModel
from tests.model_server import ModelServer, model_server
from uag.draft.v1 import draft_pb2 as pb
from uag.draft.v1 import draft_pb2_grpc
from uag.model.v1 import model_pb2
from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition
from uag_common.rpc.loaded_model import ModelSlot
from uag_common.rpc.model_messages import encode_version

SHA256 = FakeModel().description.tokenizer_sha256
MIN_PROBABILITY = 0.95
"""More than the 0.9 of the fake's tokens."""
Call = grpc.aio.StreamStreamCall[pb.SessionRequest, pb.SessionResponse]


def add_service(server: grpc.aio.Server, slot: ModelSlot) -> None:
    servicer = DraftServicer(slot, MIN_PROBABILITY)
    draft_pb2_grpc.add_DraftServiceServicer_to_server(servicer, server)


def begin(server: ModelServer) -> Call:
    call: Call = draft_pb2_grpc.DraftServiceStub(server.channel).Session()
    return call


def opening(ids: Sequence[int], **options: object) -> pb.SessionRequest:
    message = pb.Open(context_ids=ids, tokenizer_sha256=SHA256, **options)  # type: ignore[arg-type]
    return pb.SessionRequest(open=message)


def proposal(kept: Sequence[int], max_tokens: int, **options: object) -> pb.SessionRequest:
    version = encode_version(ContextVersion.of(kept, len(kept)))
    message = pb.Propose(
        round=3,
        keep=len(kept),
        kept=version,
        max_tokens=max_tokens,
        **options,  # type: ignore[arg-type]
    )
    return pb.SessionRequest(propose=message)


async def ask(call: Call, request: pb.SessionRequest) -> pb.SessionResponse:
    async with asyncio.timeout(5):
        await call.write(request)
        answer = await call.read()
    assert isinstance(answer, pb.SessionResponse)
    return answer


async def test_a_session_from_its_start_to_its_end() -> None:
    prefix = model_pb2.PrefixReuse(key=b"a", keep=True)
    async with model_server(FakeModel(), add_service) as server:
        call = begin(server)
        opened = (await ask(call, opening((1, 2, 3), prefix=prefix))).opened
        assert opened == pb.Opened(time=opened.time)
        request = proposal((1, 2), 2, append_ids=[7], min_probability=0.5)
        proposed = (await ask(call, request)).proposed
        assert [token.id for token in proposed.tokens] == [8, 9]
        assert (proposed.round, proposed.end) == (3, pb.PROPOSAL_END_LENGTH)
        await call.done_writing()
        assert await call.code() is grpc.StatusCode.OK
        load = await server.resting()
        assert (load.kept_prefixes, load.kept_prefix_bytes) == (1, 400)
        opened = (await ask(begin(server), opening((1, 2, 7, 9), prefix=prefix))).opened
        assert opened.cached_tokens == 3


async def test_how_tokens_are_drawn_arrives() -> None:
    model = FakeModel()
    sampling = model_pb2.Sampling(temperature=0.5, top_p=0.5, seed=7, choice=2)
    async with model_server(model, add_service) as server:
        call = begin(server)
        await ask(call, opening((1, 2, 3), sampling=sampling, answer_start=1))
        position = model_pb2.NoisePosition(offset=2**40, repeats=1)
        await ask(call, proposal((1, 2, 3), 1, position=position))
        assert model.chooser.position == NoisePosition(2**40, 1)
        assert model.chooser.answer_start == 1
        told = model.chooser.decoding.sampling
        assert (told.temperature, told.top_p, told.top_k, told.seed, told.choice) == (
            0.5,
            0.5,
            None,
            7,
            2,
        )
        await call.write(proposal((1, 2, 3), 1))
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "propose.position" in (await call.details() or "")
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=4, kv_blocks=1000)


async def test_the_service_knows_how_probable_a_token_must_be_if_it_is_not_told() -> None:
    async with model_server(FakeModel(), add_service) as server:
        call = begin(server)
        await ask(call, opening((1, 2, 3)))
        proposed = (await ask(call, proposal((1, 2, 3), 2))).proposed
        assert proposed.end == pb.PROPOSAL_END_LOW_PROBABILITY
        proposed = (await ask(call, proposal((1, 2, 3), 2, min_probability=0.0))).proposed
        told = [token.probability for token in proposed.tokens]
        assert told == pytest.approx([0.905, 0.905], abs=0.001)
        call.cancel()


async def test_one_session_too_many_and_one_without_commands() -> None:
    async with model_server(FakeModel(), add_service, max_sessions=1, idle_seconds=0.3) as server:
        idle = begin(server)
        await ask(idle, opening((1,)))
        assert await begin(server).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await idle.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=1, kv_blocks=1000)


async def test_many_cancels_leave_nothing() -> None:
    async with model_server(FakeModel(), add_service, max_sessions=500) as server:

        async def use(number: int) -> None:
            call = begin(server)
            await call.write(opening((1, 2, 3)))
            if number % 2:
                await call.read()
                await call.write(proposal((1, 2, 3), 30))
            await asyncio.sleep(0.001 * (number % 7))
            call.cancel()

        await asyncio.gather(*(use(number) for number in range(300)))
        assert await server.resting() == model_pb2.GetLoadResponse(max_sessions=500, kv_blocks=1000)
