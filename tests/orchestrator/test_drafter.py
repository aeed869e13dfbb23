"""The model drafter: whatever happens to its session, it answers and never raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from orchestrator.draft_context import DraftContext
from orchestrator.model_drafter import LONG_READ, MAX_REOPENS
from orchestrator.request import TextPrompt, TokenPrompt
from orchestrator.running_draft import RunningDraft
from orchestrator.sessions import DraftCommand, Drafted, ExchangeTime
from orchestrator.side import Side, open_conversion
from tests.asked_drafter import AskedDrafter
from tests.threaded_server import TokenizerOnly
from uag_common.batching.timing import StepTime
from uag_common.context import ContextVersion
from uag_common.decoding import NoisePosition
from uag_common.errors import PeerUnavailableError, StaleContextError, UagError

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
        await asyncio.sleep(0)
        ids = tuple(self._answer(self, command))[: command.max_tokens]
        self.context.extend(ids)
        return Drafted(ids, NO_TIME)

    def run(self, command: DraftCommand) -> RunningDraft:
        draft = RunningDraft()
        self._saying = asyncio.ensure_future(self._say(command, draft))
        return draft

    async def _say(self, command: DraftCommand, draft: RunningDraft) -> None:
        try:
            drafted = await self.propose(command)
        except UagError as error:
            draft.fail(error)
            return
        for token_id in drafted.ids:
            draft.add([token_id], [0.5])
            await asyncio.sleep(0)
        draft.end(StepTime())

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
        prompt: str = "def add(left",
    ) -> None:
        encoded = target.encode(TextPrompt(prompt))
        self.target = target
        self.sessions: list[FakeSession] = []

        def open_session() -> FakeSession:
            self.sessions.append(FakeSession(answer, opening))
            return self.sessions[-1]

        self.drafter = AskedDrafter(
            4,
            DraftContext(
                open_conversion(target, draft, encoded),
                draft.vocabulary,
                context_length,
                draft.encoder.start_ids(),
            ),
            open_session,
            wait=wait,
        )
        self.tally = self.drafter.observation.tally

    async def started(self) -> AskedDrafter:
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


async def test_a_context_that_is_full_and_cannot_slide_ends_drafting(
    sides: tuple[Side, Side],
) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), context_length=14)
    drafter = await bench.started()
    for number in range(1, 20):
        drafter.commit(bench.ids("x"))
        await drafter.propose(number, room=5)
    assert drafter.degraded is not None
    assert "context of 14 tokens is full" in drafter.degraded.reason
    assert bench.sessions[0].closed


@pytest.mark.parametrize("wait", [False, True])
async def test_an_answer_may_grow_past_the_context(sides: tuple[Side, Side], wait: bool) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), context_length=24, wait=wait)
    drafter = await bench.started()
    for number in range(1, 60):
        drafter.commit(bench.ids("y"))
        assert await drafter.propose(number, room=5) == bench.ids("x")
    assert drafter.degraded is None
    (session,) = bench.sessions
    assert max(command.keep + len(command.append_ids) for command in session.commands) <= 20
    assert [command.position.offset for command in session.commands] == [*range(1, 60)]
    assert sum(not command.keep for command in session.commands) in range(4, 10)


async def test_a_prompt_longer_than_the_context_is_read_from_its_end(
    sides: tuple[Side, Side],
) -> None:
    target, draft = sides
    prompt = "The quick brown fox jumps. " * 20
    bench = Bench(target, draft, says(draft, "The"), context_length=40, prompt=prompt)
    drafter = await bench.started()
    (session,) = bench.sessions
    assert session.answer_start == len(session.context) <= 20
    spelled = b"".join(draft.vocabulary.piece(item) or b"" for item in session.context)
    assert spelled
    assert prompt.encode().endswith(spelled)
    assert await drafter.propose(1, room=5) == bench.ids("The")
    assert drafter.degraded is None


async def test_a_long_part_is_read_beside_the_rounds(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    prompt = "The quick brown fox jumps. " * 40
    length = len(draft.encoder.encode_text(prompt))
    bench = Bench(target, draft, says(draft, "x"), context_length=length + 4, prompt=prompt)
    drafter = await bench.started()
    assert await drafter.propose(1, room=5) == bench.ids("x")
    drafter.commit(bench.ids("y"))
    # The context is full: half of it is read anew, and the next round comes before that is done.
    assert await drafter.propose(2, room=5) == ()
    assert await drafter.propose(3, room=5) == ()
    drafter.commit(bench.ids("yy"))
    await asyncio.sleep(0.01)
    assert await drafter.propose(4, room=5) == bench.ids("x")
    (session,) = bench.sessions
    counts = [(len(command.append_ids), command.max_tokens) for command in session.commands]
    assert counts[0][1] == counts[2][1] == 4
    assert counts[1][0] > LONG_READ
    assert counts[1][1] == 1
    assert session.context[-4:] == [*draft.encoder.encode_text("yyyx")]
    assert drafter.degraded is None


async def test_where_drafts_are_forced_a_round_waits_for_a_long_part(
    sides: tuple[Side, Side],
) -> None:
    target, draft = sides
    prompt = "The quick brown fox jumps. " * 40
    length = len(draft.encoder.encode_text(prompt))
    bench = Bench(
        target, draft, says(draft, "x"), context_length=length + 4, prompt=prompt, wait=True
    )
    drafter = await bench.started()
    for number in range(1, 4):
        assert await drafter.propose(number, room=5) == bench.ids("x")
        drafter.commit(bench.ids("y"))


@pytest.mark.parametrize("lost", [StaleContextError("restarted"), PeerUnavailableError("gone")])
async def test_a_draft_that_is_lost_while_it_reads(
    sides: tuple[Side, Side], lost: Exception
) -> None:
    target, draft = sides

    def loses(session: FakeSession, command: DraftCommand) -> Sequence[int]:
        if len(command.append_ids) > LONG_READ:
            raise lost
        return says(draft, "x")(session, command)

    prompt = "The quick brown fox jumps. " * 40
    length = len(draft.encoder.encode_text(prompt))
    bench = Bench(target, draft, loses, context_length=length + 4, prompt=prompt)
    drafter = await bench.started()
    assert await drafter.propose(1, room=5) == bench.ids("x")
    drafter.commit(bench.ids("y"))
    for number in (2, 3):
        assert await drafter.propose(number, room=5) == ()
        await asyncio.sleep(0.01)
    again = await drafter.propose(4, room=5)
    if isinstance(lost, StaleContextError):
        assert again == bench.ids("x")
        assert drafter.degraded is None
    else:
        assert again == ()
        assert drafter.degraded is not None
        assert drafter.degraded.since_round == 3
    assert bench.sessions[0].closed


async def test_a_draft_that_has_nothing_to_read_yet_begins_later(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    eos = target.vocabulary.roles.primary_eos
    assert eos is not None
    bench = Bench(target, draft, says(draft, "x"))
    conversion = open_conversion(target, draft, target.encode(TokenPrompt((eos,))))
    assert not conversion.draft_ids
    sessions: list[FakeSession] = []

    def open_session() -> FakeSession:
        sessions.append(FakeSession(says(draft, "x")))
        return sessions[-1]

    context = DraftContext(conversion, draft.vocabulary, 200, ())
    drafter = AskedDrafter(4, context, open_session, wait=True)
    drafter.start()
    assert await drafter.propose(1, room=5) == ()
    assert not sessions
    drafter.commit(bench.ids("y"))
    assert await drafter.propose(2, room=5) == bench.ids("x")
    assert sessions[0].answer_start == 0
    assert drafter.degraded is None


async def test_closing_frees_a_session_that_still_opens(sides: tuple[Side, Side]) -> None:
    target, draft = sides
    bench = Bench(target, draft, says(draft, "x"), opening=PeerUnavailableError("late"))
    bench.drafter.start()
    bench.drafter.close()
    await asyncio.sleep(0.01)
    assert bench.sessions[0].closed


def test_a_version_is_of_the_kept_tokens() -> None:
    assert ContextVersion.of((1, 2, 3), 2) == ContextVersion.of((1, 2), 2)
