"""A drafter that asks the model in every round."""

from __future__ import annotations

from orchestrator.drafter import Guess, Verdict
from orchestrator.events import TokenSource
from orchestrator.forced_drafter import ForcedDrafter
from tests.orchestrator.held_session import NO_TIME, new_model


async def test_it_asks_for_the_same_in_every_round_whatever_comes_of_it() -> None:
    model, sessions = new_model(wait=True)
    drafter = ForcedDrafter(model, 3, 0.25)
    drafter.start()
    for number in range(1, 6):
        assert await drafter.propose(number, room=9) == Guess((10, 11, 12), TokenSource.DRAFT)
        drafter.learn(Verdict(3, 0, NO_TIME))
        drafter.commit((99,))
    (session,) = sessions
    assert [(each.max_tokens, each.min_probability) for each in session.asked] == [(3, 0.25)] * 5
    assert session.asked[-1].append_ids == (99,)
    assert drafter.degraded is None
    drafter.close()
    assert session.closed


async def test_the_service_may_be_left_to_say_what_is_too_improbable() -> None:
    model, sessions = new_model(wait=True)
    drafter = ForcedDrafter(model, 3, None)
    assert len((await drafter.propose(1, room=2)).ids) == 2
    assert (await drafter.propose(2, room=0)).ids == ()
    assert [each.min_probability for each in sessions[0].asked] == [None]
    drafter.close()
