from __future__ import annotations

import asyncio

from orchestrator.running_draft import RunningDraft
from uag_common.batching.timing import StepTime
from uag_common.errors import PeerUnavailableError


async def waits(draft: RunningDraft) -> bool:
    """Whether `more` has something to wait for."""
    waiting = asyncio.ensure_future(draft.more())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    done = waiting.done()
    waiting.cancel()
    return not done


async def test_more_goes_on_once_for_what_came_since() -> None:
    draft = RunningDraft()
    assert await waits(draft)
    draft.add((1, 2), (0.5, 0.25))
    draft.add((3,), (0.125,))
    assert (draft.ids, draft.probabilities) == ([1, 2, 3], [0.5, 0.25, 0.125])
    assert not await waits(draft)
    assert await waits(draft)


async def test_what_has_ended_is_never_waited_for() -> None:
    ended, failed = RunningDraft(), RunningDraft()
    ended.end(StepTime(passes=3))
    failed.fail(PeerUnavailableError("gone"))
    for draft in (ended, failed):
        assert draft.ended
        for _ in range(3):
            assert not await waits(draft)
    assert ended.error is None
    assert failed.time is None
