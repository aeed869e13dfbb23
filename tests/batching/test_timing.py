"""The time of a step, and its message."""

from __future__ import annotations

import asyncio

import pytest

from draft_service.session import DraftSession
from tests.bench import bench
from tests.draft_service.commands import opening, proposal
from tests.fakes import FakeModel
from uag.model.v1 import model_pb2
from uag_common.batching.timing import Pass, StepTime
from uag_common.rpc.model_messages import decode_time, encode_time

PASSES = (
    Pass(queued=1.0, began=1.5, ended=2.0, sessions=1, tokens=300),
    Pass(queued=2.0, began=2.25, ended=2.5, sessions=3, tokens=9),
)


def test_a_step_is_the_sum_of_its_passes_and_tells_of_the_last_one() -> None:
    assert StepTime.of(PASSES) == StepTime(0.75, 0.75, passes=2, sessions=3, tokens=9)
    assert StepTime.of(()) == StepTime()


@pytest.mark.parametrize("time", [StepTime(), StepTime.of(PASSES)])
def test_its_message_tells_the_same(time: StepTime) -> None:
    assert decode_time(encode_time(time)) == time


def test_a_service_that_does_not_tell_of_passes_is_understood() -> None:
    told = encode_time(StepTime(0.5, 0.25))
    assert decode_time(model_pb2.StepTime.FromString(told.SerializeToString())).sessions == 0


async def test_sessions_that_share_a_pass_are_told_so() -> None:
    async with bench(FakeModel()) as used:
        sessions = [DraftSession(used.model, used.batcher, used.prefixes) for _ in range(3)]
        for session in sessions:
            await session.open(opening((1, 2, 3)))
        alone = await sessions[0].propose(proposal((1, 2, 3), max_tokens=2))
        assert (alone.time.passes, alone.time.sessions, alone.time.tokens) == (2, 1, 1)
        together = await asyncio.gather(
            *(session.propose(proposal((1, 2, 3), (7,), max_tokens=2)) for session in sessions)
        )
        for each in together:
            assert each.time.passes == 2
            assert each.time.forward_seconds > 0
            assert 1 <= each.time.sessions == each.time.tokens <= 3
        # Those that wait for the same pass share it.
        assert max(each.time.sessions for each in together) > 1
