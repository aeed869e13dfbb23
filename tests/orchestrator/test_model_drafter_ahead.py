"""The model drafter while its draft runs ahead: what goes on, what begins anew, what ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.draft_context import DraftContext
from orchestrator.model_drafter import NOTHING, ModelDrafter, ModelGuess, Wanted
from tests.conversion import small_tokenizers as small
from tests.orchestrator.held_session import ONE, PROMPT, TURN, HeldSession, new_model
from tests.unseen import unseen_observation
from uag_common.batching.timing import StepTime
from uag_common.errors import PeerUnavailableError, StaleContextError
from uag_common.limits import MAX_DRAFT_TOKENS


@dataclass(slots=True)
class Bench:
    """A drafter that is ready, and its sessions."""

    drafter: ModelDrafter
    sessions: list[HeldSession]

    @property
    def session(self) -> HeldSession:
        return self.sessions[-1]

    async def guess(self, least: int = 0, room: int = 20, number: int = 1) -> tuple[int, ...]:
        async with asyncio.timeout(5):
            return (await self.drafter.draft_on(number, least, room)).ids


async def ready(context_length: int = 200) -> Bench:
    drafter, sessions = new_model(context_length=context_length)
    drafter.start()
    await asyncio.sleep(0.001)
    assert drafter.ready
    return Bench(drafter, sessions)


async def test_a_right_guess_goes_on_without_a_new_command() -> None:
    bench = await ready()
    assert await bench.guess() == ()
    assert bench.drafter.runs
    bench.session.say(10, 11, 12)
    assert bench.drafter.in_hand(20) == 3
    assert await bench.guess(number=2) == (10, 11, 12)
    # The target's own token is what the draft says next.
    bench.drafter.commit((10, 11, 12, 13))
    bench.session.say(13, 14)
    assert await bench.guess(number=3) == (14,)
    assert len(bench.session.commands) == 1


async def test_the_targets_own_token_may_come_before_the_draft_says_it() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.say(10)
    bench.drafter.commit((10, 11))
    assert await bench.guess(number=2) == ()
    assert len(bench.session.commands) == 1
    bench.session.say(11, 12)
    assert await bench.guess(number=3) == (12,)


@pytest.mark.parametrize(
    ("committed", "keep", "append"),
    [((10, 99), 4, (99,)), ((10, 11, 12, 99), 6, (99,)), ((99,), 3, (99,))],
)
async def test_a_wrong_guess_begins_anew_from_what_was_right(
    committed: tuple[int, ...], keep: int, append: tuple[int, ...]
) -> None:
    bench = await ready()
    await bench.guess()
    bench.session.say(10, 11, 12, 13, 14)
    bench.drafter.commit(committed)
    assert bench.drafter.in_hand(20) == 0
    assert await bench.guess(number=2) == ()
    assert len(bench.session.commands) == 2
    command = bench.session.commands[-1]
    assert (command.round, command.keep, command.append_ids) == (2, keep, append)
    bench.session.say(20)
    assert await bench.guess(number=3) == (20,)


async def test_what_an_older_draft_still_says_is_not_taken() -> None:
    bench = await ready()
    await bench.guess()
    bench.drafter.commit((99,))
    bench.session.say(10)
    await bench.guess(number=2)
    bench.session.drafts[0].add((99, 77), (0.5, 0.5))
    assert await bench.guess(number=3) == ()


async def test_a_round_waits_for_the_least_and_takes_all_that_is_there() -> None:
    bench = await ready()
    waiting = asyncio.ensure_future(bench.guess(least=3))
    for token_id in (10, 11):
        await asyncio.sleep(0.001)
        bench.session.say(token_id)
    await asyncio.sleep(0.001)
    assert not waiting.done()
    bench.session.say(12, 13)
    assert await waiting == (10, 11, 12, 13)


async def test_what_it_takes_to_begin_anew_is_told_with_the_first_candidates() -> None:
    bench = await ready()
    waiting = asyncio.ensure_future(bench.drafter.draft_on(1, 2, 20))
    await asyncio.sleep(0.01)
    assert bench.session.commands[-1].first_tokens == 2
    bench.session.say(10, 11)
    begun = await waiting
    assert begun.begun_seconds is not None
    assert 0.01 <= begun.begun_seconds < 5
    bench.drafter.commit((10, 11))
    bench.session.say(12, 13)
    # It went on, and did not begin.
    assert (await bench.drafter.draft_on(2, 2, 20)).begun_seconds is None


async def test_a_draft_that_was_left_is_counted_once_it_has_ended() -> None:
    observation = unseen_observation()
    drafter, sessions = new_model(observation=observation)
    drafter.start()
    await asyncio.sleep(0.001)
    await drafter.draft_on(1, 0, 20)
    sessions[0].say(10, 11, 12)
    drafter.commit((10, 99))
    await drafter.draft_on(2, 0, 20)
    assert observation.tally.speculation().draft_tokens_proposed == 0
    # It had drafted one more before it knew.
    sessions[0].drafts[0].add((13,), (0.5,))
    sessions[0].drafts[0].end(StepTime(forward_seconds=0.5, passes=4))
    drafter.commit((20,))
    assert observation.tally.speculation().draft_tokens_proposed == 4
    assert observation.tally.times().draft_seconds == 0.5
    drafter.close()
    assert observation.tally.speculation().draft_tokens_proposed == 4


async def test_no_more_than_there_is_room_for() -> None:
    bench = await ready()
    waiting = asyncio.ensure_future(bench.guess(least=8, room=2))
    await asyncio.sleep(0.001)
    bench.session.say(10, 11, 12)
    assert await waiting == (10, 11)
    assert bench.session.commands[0].max_tokens == 2 * 2 + 2
    assert await bench.guess(room=0, number=2) == ()


async def test_a_command_asks_for_no_more_than_is_allowed() -> None:
    bench = await ready(10_000)
    await bench.guess(room=1000)
    assert bench.session.commands[0].max_tokens == MAX_DRAFT_TOKENS


async def test_a_proposal_that_has_ended_is_taken_to_its_end_and_then_begun_anew() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.say(10, 11)
    bench.session.drafts[-1].end(StepTime())
    assert not bench.drafter.runs
    # Nothing more comes: it is not waited for.
    assert await bench.guess(least=5, number=2) == (10, 11)
    bench.drafter.commit((10, 11, 12))
    assert await bench.guess(number=3) == ()
    command = bench.session.commands[-1]
    assert len(bench.session.commands) == 2
    assert (command.keep, command.append_ids) == (len(PROMPT) + 2, (12,))


async def test_a_draft_that_ends_while_it_is_waited_for() -> None:
    bench = await ready()
    waiting = asyncio.ensure_future(bench.guess(least=5))
    await asyncio.sleep(0.001)
    bench.session.say(10)
    bench.session.drafts[-1].end(StepTime())
    assert await waiting == (10,)


async def test_a_draft_that_dies_while_it_runs_ends_drafting_and_not_the_answer() -> None:
    bench = await ready()
    waiting = asyncio.ensure_future(bench.guess(least=5, number=4))
    await asyncio.sleep(0.001)
    bench.session.say(10)
    bench.session.drafts[-1].fail(PeerUnavailableError("gone"))
    assert await waiting == ()
    degraded = bench.drafter.degraded
    assert degraded is not None
    assert (degraded.reason, degraded.since_round) == ("gone", 4)
    assert bench.session.closed
    bench.drafter.commit((10,))
    for number in (5, 6):
        assert await bench.guess(number=number) == ()
        assert bench.drafter.in_hand(20) == 0
        bench.drafter.pause()
    assert not bench.drafter.runs


async def test_a_draft_that_dies_unseen_is_told_when_it_is_looked_at() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.drafts[-1].fail(PeerUnavailableError("gone"))
    assert bench.drafter.in_hand(20) == 0
    assert bench.drafter.degraded is not None


async def test_a_context_that_is_lost_while_the_draft_runs_is_sent_whole() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.drafts[-1].fail(StaleContextError("restarted"))
    bench.drafter.commit((10,))
    assert await bench.guess(number=2) == ()
    assert [session.closed for session in bench.sessions] == [True, False]
    await asyncio.sleep(0.001)
    await bench.guess(number=3)
    bench.session.say(11)
    assert await bench.guess(number=4) == (11,)
    assert bench.drafter.degraded is None


async def test_a_pause_lets_the_draft_stop_and_changes_its_context_only() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.say(10, 11)
    bench.drafter.pause()
    stop = bench.session.commands[-1]
    assert (stop.max_tokens, stop.keep, stop.append_ids) == (0, len(PROMPT), ())
    assert not bench.drafter.runs
    bench.drafter.pause()
    assert len(bench.session.commands) == 2


async def test_a_pause_of_what_has_ended_asks_for_nothing() -> None:
    bench = await ready()
    bench.drafter.pause()
    await bench.guess()
    bench.session.say(10)
    bench.session.drafts[-1].end(StepTime())
    bench.drafter.pause()
    assert len(bench.session.commands) == 1
    assert bench.drafter.in_hand(20) == 0


async def test_a_round_that_waits_may_follow_one_that_does_not() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.say(10, 11, 12)
    bench.drafter.commit((10, 99))
    assert bench.drafter.in_hand(20) == 0
    async with asyncio.timeout(5):
        guess = await bench.drafter.draft(2, Wanted(4, 20, 0.0))
    assert guess.ids == (10, 11, 12, 13)
    (command,) = bench.session.asked
    assert (command.keep, command.append_ids) == (len(PROMPT) + 1, (99,))
    assert not bench.drafter.runs


async def test_probabilities_go_with_the_candidates() -> None:
    bench = await ready()
    await bench.guess()
    bench.session.drafts[-1].add((10, 11, 12), (0.9, 0.8, 0.7))
    bench.drafter.commit((10,))
    guess = await bench.drafter.draft_on(2, 0, 1)
    assert guess == ModelGuess((11,), (0.8,))


async def test_nothing_is_begun_where_the_context_is_full() -> None:
    bench = await ready(len(PROMPT) + 1)
    bench.drafter.commit((10,))
    assert await bench.guess() == ()
    assert bench.drafter.degraded is not None
    assert bench.session.commands == []


async def test_after_close_nothing_runs() -> None:
    bench = await ready()
    await bench.guess()
    bench.drafter.close()
    assert bench.session.closed
    assert not bench.drafter.runs
    assert bench.drafter.in_hand(20) == 0
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    assert not tasks


async def test_nothing_is_asked_of_a_draft_that_is_not_open_yet() -> None:
    drafter, sessions = new_model()
    drafter.start()
    assert not drafter.ready
    assert await drafter.draft_on(1, 4, 20) == NOTHING
    assert sessions[0].commands == []
    drafter.close()
    # The open that was cancelled comes to its end.
    await asyncio.sleep(0)


async def test_a_control_token_begins_anew() -> None:
    """No text tells the draft of it: what runs cannot be the answer's."""
    other = Vocabulary.build(
        small.sentencepiece([]), Roles(eos=frozenset([2]), primary_eos=2, turn_start=1)
    )
    translation = Translation(ONE, other)
    translation.commit(spans(ONE, b"abc").ids)
    translation.sync()
    session = HeldSession()
    context = DraftContext(translation, other, 200, ())
    drafter = ModelDrafter(context, lambda: session, unseen_observation(), wait=False)
    drafter.start()
    await asyncio.sleep(0.001)
    await drafter.draft_on(1, 0, 20)
    session.say(*spans(other, b"de").ids)
    assert len((await drafter.draft_on(2, 0, 20)).ids) == 2
    drafter.commit((TURN,))
    assert await drafter.draft_on(3, 0, 20) == NOTHING
    assert [command.round for command in session.commands] == [1, 3]
    assert 1 in session.commands[-1].append_ids
