from __future__ import annotations

import asyncio

from orchestrator.growing_lookup import LONG_PROMPT, GrowingLookup
from orchestrator.speculation.lookup import Match

LONG = (*range(10, 10 + LONG_PROMPT), 7, 8, 9)


async def entered(lookup: GrowingLookup, room: int = 5) -> Match | None:
    """What is found once the prompt is entered."""
    for _ in range(1000):
        if (found := lookup.find(room)) is not None:
            return found
        await asyncio.sleep(0.001)
    return None


async def test_a_short_prompt_is_looked_up_at_once() -> None:
    lookup = GrowingLookup((1, 2, 3, 1), 4)
    assert lookup.find(9) == Match(1, (2, 3, 1, 2))
    assert lookup.find(2) == Match(1, (2, 3))


async def test_the_answer_is_looked_up_as_it_grows() -> None:
    lookup = GrowingLookup((1, 2, 3), 2)
    assert lookup.find(9) is None
    lookup.extend((5, 1))
    lookup.extend((2,))
    assert lookup.find(9) == Match(2, (3, 5))


async def test_a_long_prompt_is_entered_beside_the_rounds() -> None:
    lookup = GrowingLookup(LONG, 5)
    assert lookup.find(5) is None
    # What comes meanwhile is entered after it.
    lookup.extend((10, 11, 12))
    assert await entered(lookup) == Match(3, (13, 14, 15, 16, 17))
    lookup.extend((7, 8))
    assert lookup.find(2) == Match(2, (9, 10))
    lookup.close()


async def test_nothing_is_entered_where_nothing_is_wanted() -> None:
    off, full = GrowingLookup(LONG, 0), GrowingLookup(LONG, 5)
    off.extend((10, 11))
    assert off.find(5) is None
    assert full.find(0) is None
    assert full.find(-1) is None
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_lookup_that_is_closed_while_it_enters_leaves_nothing() -> None:
    lookup = GrowingLookup(LONG, 5)
    lookup.find(5)
    lookup.close()
    await asyncio.sleep(0.05)
    assert asyncio.all_tasks() == {asyncio.current_task()}
