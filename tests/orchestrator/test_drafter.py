"""The model drafter: whatever happens to its session, it answers and never raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from orchestrator.drafter import MAX_REOPENS, DraftPlan, ModelDrafter
from orchestrator.request import TextPrompt
from orchestrator.sessions import DraftCommand, Drafted, ExchangeTime
from orchestrator.side import Side, open_conversion
from tests.threaded_server import TokenizerOnly
from tests.unseen import unseen_observation
from uag_common.batching.timing import StepTime
from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition
from uag_common.errors import PeerUnavailableError, StaleContextError

NO_TIME = ExchangeTime(0.0, StepTime())
Answer = Callable[["FakeSession", DraftCommand], Sequence[int]]


class FakeSession:
    """A draft session that keeps its context as the service does."""

    def __init__(self, answer: Answer, opening: Exception | None = None) -> None:
        self.context: list[int] = []
        self.answer_start = 0
        self.commands: list[DraftCommand] = []
        self.closed = False
        self._answer = answer
        self._opening = opening

    async def open(self, context_ids: Sequence[int], answer_start: int) -> ExchangeTime:
        await asyncio.sleep(0)
        if self._opening is not None:
            raise self._opening
        self.context, self.answer_start = list(context_ids), answer_start
        return NO_TIME

    async def propose(self, command: DraftCommand) -> Drafted:
        command.kept.check_prefix(self.context)
        self.context[command.keep :] = command.append_ids
        self.commands.append(command)
        ids = tuple(self._answer(self, command))
        self.context.extend(ids)
        return Drafted(ids, NO_TIME)

    def close(self) -> None:
        self.closed = True


class Bench:
    """A drafter between two vocabularies, and the sessions that it opened."""

    def __init__(
        self,
        target: Side,
        draft: Side,
        answer: Answer,
        opening: Exception | None = None,
        context_length: int = 200,
        *,
        wait: bool = False,
    ) -> None:
        prompt = "def add(left"
        encoded = target.encode(TextPrompt(prompt))
        self.target = target
        self.sessions: list[FakeSession] = []
        observation = unseen_observation()
        self.tally = observation.tally

        def open_session() -> FakeSession:
            self.sessions.append(FakeSession(answer, opening))
            return self.sessions[-1]

        self.drafter = ModelDrafter(
            DraftPlan(tokens=4, context_length=context_length, wait=wait),
            open_conversion(target, draft, encoded),
            open_session,
            observation,
        )

    async def started(self) -> ModelDrafter:
        self.drafter.start()
        await asyncio.sleep(0.01)
        return self.drafter

    def ids(self, text: str) -> tuple[int, ...]:
        return self.target.encode(TextPrompt(text)).ids


@pytest.fixture(scope="module")
def sides(llama: Path, gpt2: Path) -> tuple[Side, Side]:
    models = (TokenizerOnly.read(llama, 600), TokenizerOnly.read(gpt2, 600))
    built = [Side.build(model.description, model.tokenizer_files) for model in models]
    return built[0], built[1]


def says(draft: Side, text: str) -> Answer:
    return lambda _session, _command: draft.encoder.encode_text(text)[
        len(draft.encoder.start_ids()) :
    ]


async def test_proposals_are_converted_and_the_mirror_follows(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, ": int, right"))
    drafter = await bench.started()
    drafter.commit(bench.ids(":"))
    candidates = await drafter.propose(1, room=20)
    spelled = b"".join(target.vocabulary.piece(item) or b"" for item in candidates)
    assert spelled.startswith(b": int")
    drafter.commit(bench.ids(" int"))
    await drafter.propose(2, room=20)
    text = b"".join(
        draft.vocabulary.piece(i) or b"" for i in bench.sessions[0].commands[1].append_ids
    )
    assert text
    assert drafter.degraded is None


async def test_candidates_never_exceed_the_room(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, ": int, right: int"))
    drafter = await bench.started()
    assert len(await drafter.propose(1, room=2)) == 2
    assert await drafter.propose(2, room=0) == ()
    assert [command.max_tokens for command in bench.sessions[0].commands] == [2]


async def test_nothing_is_waited_for_while_the_draft_opens(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"))
    bench.drafter.start()
    assert await bench.drafter.propose(1, room=5) == ()
    await asyncio.sleep(0.01)
    assert await bench.drafter.propose(2, room=5) != ()


async def test_a_round_waits_for_the_draft_where_it_is_forced(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), wait=True)
    bench.drafter.start()
    assert await bench.drafter.propose(1, room=5) != ()


async def test_the_draft_is_told_where_in_the_answer_it_goes_on(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"))
    drafter = await bench.started()
    session = bench.sessions[0]
    assert session.answer_start == len(session.context)
    eos = target.vocabulary.roles.primary_eos
    assert eos is not None
    for number, ids in enumerate(((), bench.ids(": int"), (eos, eos), bench.ids("y")), start=1):
        drafter.commit(ids)
        await drafter.propose(number, room=5)
    assert [command.position for command in session.commands] == [
        NoisePosition(0), NoisePosition(5), NoisePosition(5, 2), NoisePosition(6),
    ]  # fmt: skip


async def test_a_draft_that_cannot_be_opened_is_told(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), opening=PeerUnavailableError("gone"))
    drafter = await bench.started()
    assert await drafter.propose(1, room=5) == ()
    assert drafter.degraded is not None
    assert (drafter.degraded.reason, drafter.degraded.since_round) == ("gone", 1)
    assert bench.sessions[0].closed
    drafter.commit(bench.ids("x"))
    assert await drafter.propose(2, room=5) == ()


async def test_a_stale_context_is_sent_whole(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    lost = [True]

    def forgets_once(session: FakeSession, command: DraftCommand) -> Sequence[int]:
        if lost.pop() if lost else False:
            raise StaleContextError("restarted")
        return says(draft, "x")(session, command)

    bench = Bench(target, draft, forgets_once)
    drafter = await bench.started()
    assert await drafter.propose(1, room=5) == ()
    drafter.commit(bench.ids(": int"))
    await asyncio.sleep(0.01)
    assert await drafter.propose(2, room=5) != ()
    assert [session.closed for session in bench.sessions] == [True, False]
    assert drafter.degraded is None


async def test_a_draft_that_is_always_stale_is_given_up(sides: tuple[Side, Side]) -> None:
    target, draft = sides

    def forgets(_session: FakeSession, _command: DraftCommand) -> Sequence[int]:
        raise StaleContextError("restarted again")

    bench = Bench(target, draft, forgets)
    drafter = await bench.started()
    for number in range(1, MAX_REOPENS + 5):
        assert await drafter.propose(number, room=5) == ()
        await asyncio.sleep(0.01)
    assert drafter.degraded is not None
    assert len(bench.sessions) == MAX_REOPENS + 1
    assert all(session.closed for session in bench.sessions)


async def test_a_context_that_is_full_ends_drafting(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), context_length=14)
    drafter = await bench.started()
    for number in range(1, 20):
        drafter.commit(bench.ids("x"))
        await drafter.propose(number, room=5)
    assert drafter.degraded is not None
    assert "context of 14 tokens is full" in drafter.degraded.reason
    assert bench.sessions[0].closed


async def test_closing_frees_a_session_that_still_opens(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), opening=PeerUnavailableError("late"))
    bench.drafter.start()
    bench.drafter.close()
    await asyncio.sleep(0.01)
    assert bench.sessions[0].closed


def test_a_version_is_of_the_kept_tokens() -> None:
    assert ContextVersion.of((1, 2, 3), 2) == ContextVersion.of((1, 2), 2)
