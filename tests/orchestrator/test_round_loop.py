"""The round loop with a target that counts up and drafters that guess: what is cut and counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.answer_end import AnswerEnd
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.drafter import Guess, NoDrafter, Verdict
from orchestrator.events import (
    Degraded,
    Delta,
    Finished,
    FinishReason,
    Prefilled,
    TokenSource,
    TopToken,
    Usage,
)
from orchestrator.observation import Observation
from orchestrator.round_loop import AnswerLimits, RoundLoop
from orchestrator.sessions import Chosen, ExchangeTime, Opened
from orchestrator.side import Side
from orchestrator.stopping import AnswerText, Stopping
from orchestrator.text_stream import TextStream
from tests.threaded_server import TokenizerOnly
from tests.unseen import unseen_observation
from uag_common.batching.timing import StepTime
from uag_common.context import ContextVersion
from uag_common.decoding import Choice, TokenLogprob
from uag_common.errors import PeerUnavailableError

PROMPT = (10, 11)
EOS = 17
SPENT = ExchangeTime(0.3, StepTime(queue_seconds=0.05, forward_seconds=0.2))


class CountingTarget:
    """After n comes n + 1. Fails in round `dies_in`, and says nothing from round `hangs_in` on."""

    def __init__(self, dies_in: int | None = None, hangs_in: int | None = None) -> None:
        self.context: list[int] = []
        self.closed = False
        self.asked = asyncio.Event()
        self._dies_in = dies_in
        self._hangs_in = hangs_in

    async def open(self, prompt_ids: Sequence[int]) -> Opened:
        await self._hang(0)
        self.context = [*prompt_ids, prompt_ids[-1] + 1]
        return Opened(_told(self.context[-1]), 1, (_told(PROMPT[1]),), SPENT)

    async def verify(
        self, round_number: int, committed: ContextVersion, candidates: Sequence[int]
    ) -> Chosen:
        if round_number == self._dies_in:
            raise PeerUnavailableError("the target is gone")
        await self._hang(round_number)
        committed.check_whole(self.context)
        right = range(self.context[-1] + 1, self.context[-1] + 1 + len(candidates))
        pairs = enumerate(zip(candidates, right, strict=True))
        accepted = next((i for i, (guess, true) in pairs if guess != true), len(candidates))
        self.context += [*candidates[:accepted], self.context[-1] + accepted + 1]
        taken = tuple(_told(token_id) for token_id in candidates[:accepted])
        return Chosen(taken, _told(self.context[-1]), SPENT)

    async def _hang(self, round_number: int) -> None:
        if self._hangs_in is not None and round_number >= self._hangs_in:
            self.asked.set()
            await asyncio.Event().wait()

    def close(self) -> None:
        self.closed = True


def _told(token_id: int) -> Choice:
    return Choice(token_id, -token_id / 100, (TokenLogprob(token_id, -token_id / 100),))


class Guesser:
    """Guesses `right` ids rightly and then one wrongly, if that is told."""

    degraded: Degraded | None = None

    def __init__(self, right: int, *, wrong: bool = False) -> None:
        self.last = PROMPT[-1]
        self.closed = False
        self.verdicts: list[Verdict] = []
        self._right, self._wrong = right, wrong

    def start(self) -> None: ...

    async def propose(self, round_number: int, room: int) -> Guess:
        del round_number
        guesses = [*range(self.last + 1, self.last + 1 + self._right)]
        return Guess(tuple([*guesses, *([99] if self._wrong else [])][: max(0, room)]))

    def learn(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def commit(self, ids: Sequence[int]) -> None:
        self.last = ids[-1]

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def text(llama: Path) -> Vocabulary:
    model = TokenizerOnly.read(llama, 600)
    return Side.build(model.description, model.tokenizer_files).vocabulary


def a_loop(
    drafter: Guesser | NoDrafter,
    vocabulary: Vocabulary,
    *,
    max_new_tokens: int = 6,
    context_length: int = 100,
    eos_ids: frozenset[int] = frozenset(),
    stop_ids: frozenset[int] = frozenset(),
    sequences: tuple[str, ...] = (),
    draft_must_live: bool = False,
    target: CountingTarget | None = None,
    end: AnswerEnd | None = None,
    observation: Observation | None = None,
) -> RoundLoop:
    return RoundLoop(
        choice=3,
        prompt_ids=PROMPT,
        limits=AnswerLimits(max_new_tokens, context_length, draft_must_live),
        verify=target or CountingTarget(),
        drafter=drafter,
        text=AnswerText(
            TextStream(vocabulary, at_text_start=True),
            Stopping(eos_ids, stop_ids, sequences, include_stop=False, min_new_tokens=0),
        ),
        observation=observation or unseen_observation(),
        end=end or AnswerEnd(),
        spell=lambda token_id: f"<{token_id}>",
    )


async def run(
    drafter: Guesser | NoDrafter, vocabulary: Vocabulary, **options: Any
) -> tuple[list[Delta], Finished]:
    loop = a_loop(drafter, vocabulary, **options)
    first, *events = [event async for event in loop.run()]
    assert isinstance(first, Prefilled)
    *deltas, finished = events
    assert isinstance(finished, Finished)
    return [delta for delta in deltas if isinstance(delta, Delta)], finished


def ids(deltas: list[Delta]) -> list[int]:
    return [token.id for delta in deltas for token in delta.tokens]


@pytest.mark.parametrize("right", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("wrong", [True, False])
async def test_the_answer_is_the_targets_whatever_is_guessed(
    text: Vocabulary, right: int, wrong: bool
) -> None:
    deltas, finished = await run(Guesser(right, wrong=wrong), text)
    assert ids(deltas) == [12, 13, 14, 15, 16, 17]
    assert finished.reason is FinishReason.MAX_TOKENS
    assert finished.usage == Usage(prompt_tokens=2, completion_tokens=6, cached_tokens=1)
    assert finished.choice == 3


async def test_sources_tell_who_said_a_token_first(text: Vocabulary) -> None:
    deltas, _ = await run(Guesser(2, wrong=True), text, max_new_tokens=8)
    sources = [token.source for delta in deltas for token in delta.tokens]
    draft, correction = TokenSource.DRAFT, TokenSource.CORRECTION
    assert sources[0] is TokenSource.TARGET
    assert sources[1:7] == [draft, draft, correction] * 2
    deltas, _ = await run(Guesser(1), text, max_new_tokens=5)
    sources = [token.source for delta in deltas for token in delta.tokens]
    assert sources[1:5] == [draft, TokenSource.BONUS] * 2


@pytest.mark.parametrize("eos", range(12, 19))
@pytest.mark.parametrize("right", [0, 2, 4])
async def test_an_eos_cuts_at_each_offset_of_a_block(
    text: Vocabulary, eos: int, right: int
) -> None:
    deltas, finished = await run(Guesser(right), text, max_new_tokens=20, eos_ids=frozenset([eos]))
    assert ids(deltas) == [*range(12, eos + 1)]
    assert finished.reason is FinishReason.EOS
    counts = finished.speculation
    drafted = sum(t.source is TokenSource.DRAFT for delta in deltas for t in delta.tokens)
    assert counts.candidates_accepted == drafted <= counts.candidates_examined


async def test_an_eos_at_the_last_token_is_an_eos(text: Vocabulary) -> None:
    _, finished = await run(Guesser(9), text, eos_ids=frozenset([EOS]))
    assert finished.reason is FinishReason.EOS


@pytest.mark.parametrize("right", [0, 3, 9])
async def test_a_full_context_ends_the_answer(text: Vocabulary, right: int) -> None:
    deltas, finished = await run(Guesser(right), text, max_new_tokens=50, context_length=9)
    assert ids(deltas) == [*range(12, 19)]
    assert finished.reason is FinishReason.CONTEXT_LIMIT


async def test_counts_and_times_add_up(text: Vocabulary) -> None:
    _, finished = await run(Guesser(2, wrong=True), text, max_new_tokens=7)
    counts, spent = finished.speculation, finished.time
    assert (counts.rounds, counts.plain_steps) == (2, 0)
    assert (counts.candidates_proposed, counts.candidates_examined) == (5, 5)
    assert (counts.candidates_accepted, counts.accepted_lengths) == (4, (0, 0, 2))
    assert counts.mean_accepted_length == 2
    assert counts.examined_by_position == (2, 2, 1)
    assert counts.accepted_by_position == (2, 2)
    assert spent.prefill_seconds == pytest.approx(0.2)
    assert spent.verify_seconds == pytest.approx(0.4)
    assert spent.queue_seconds == pytest.approx(0.15)
    assert spent.network_seconds == pytest.approx(0.15)


async def test_a_lost_target_ends_the_request_and_frees_both_sessions(text: Vocabulary) -> None:
    target, drafter = CountingTarget(dies_in=2), Guesser(1)
    with pytest.raises(PeerUnavailableError, match="the target is gone"):
        await run(drafter, text, target=target)
    assert target.closed
    assert drafter.closed


async def test_a_client_that_leaves_frees_both_sessions(text: Vocabulary) -> None:
    target, drafter = CountingTarget(), Guesser(1)
    events = a_loop(drafter, text, target=target, max_new_tokens=50).run()
    await anext(events)
    await anext(events)
    await events.aclose()
    assert target.closed
    assert drafter.closed


async def test_what_a_drafter_counts_as_it_closes_is_in_the_answers_figures(
    text: Vocabulary,
) -> None:
    class CountsLast(Guesser):
        def close(self) -> None:
            assert not self.closed
            super().close()
            observation.drafted(7, SPENT)

    observation = unseen_observation()
    _, finished = await run(CountsLast(1), text, observation=observation)
    assert finished.speculation.draft_tokens_proposed == 7


async def test_what_became_of_the_draft_is_told(text: Vocabulary) -> None:
    deltas, finished = await run(NoDrafter("the draft is gone"), text)
    assert ids(deltas) == [12, 13, 14, 15, 16, 17]
    assert finished.degraded is not None
    assert finished.degraded.reason == "the draft is gone"
    assert finished.degraded.since_round == 0
    assert finished.degraded.seconds > 0


@pytest.mark.parametrize("right", [0, 2, 4])
@pytest.mark.parametrize("stop", range(12, 18))
async def test_a_stop_id_beats_the_limit_in_the_same_block(
    text: Vocabulary, stop: int, right: int
) -> None:
    deltas, finished = await run(
        Guesser(right), text, stop_ids=frozenset([stop]), max_new_tokens=stop - 11
    )
    assert ids(deltas) == [*range(12, stop + 1)]
    assert (finished.reason, finished.stop) == (FinishReason.STOP_TOKEN, stop)


async def test_a_stop_sequence_is_held_back_and_told(text: Vocabulary) -> None:
    spelled = [(text.piece(token_id) or b"").decode() for token_id in range(12, 40)]
    sequence = "".join(spelled[4:7])
    for right in (0, 1, 3, 6):
        deltas, finished = await run(Guesser(right), text, sequences=(sequence,), max_new_tokens=20)
        assert ids(deltas) == [*range(12, 19)]
        assert "".join(delta.text for delta in deltas) == "".join(spelled[:4])
        assert (finished.reason, finished.stop) == (FinishReason.STOP_SEQUENCE, sequence)


async def test_what_is_told_of_a_token_goes_with_it(text: Vocabulary) -> None:
    deltas, _ = await run(Guesser(2, wrong=True), text, max_new_tokens=8)
    tokens = [token for delta in deltas for token in delta.tokens]
    assert [token.logprob for token in tokens] == [-token.id / 100 for token in tokens]
    assert tokens[3].top == (TopToken(15, -0.15, "<15>"),)
    assert [(token.round, token.position) for token in tokens[:5]] == [
        (0, 0), (1, 0), (1, 1), (1, 2), (2, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("hangs_in", [0, 1, 3])
async def test_when_the_time_is_over_the_answer_is_what_is_there(
    text: Vocabulary, hangs_in: int
) -> None:
    target, drafter = CountingTarget(hangs_in=hangs_in), Guesser(1)
    deltas, finished = await run(drafter, text, target=target, end=AnswerEnd(0.05))
    assert finished.reason is FinishReason.TIME_LIMIT
    assert ids(deltas) == [*range(12, 12 + max(0, 2 * hangs_in - 1))]
    assert target.closed
    assert drafter.closed


async def test_a_cancelled_answer_is_what_is_there(text: Vocabulary) -> None:
    target, end = CountingTarget(hangs_in=2), AnswerEnd()
    running = asyncio.ensure_future(run(Guesser(0), text, target=target, end=end))
    await target.asked.wait()
    end.cancel()
    deltas, finished = await running
    assert finished.reason is FinishReason.CANCELLED
    assert ids(deltas) == [12, 13]


async def test_a_cancelled_end_lets_no_wait_begin(text: Vocabulary) -> None:
    end = AnswerEnd()
    end.cancel()
    deltas, finished = await run(Guesser(0), text, end=end)
    assert (deltas, finished.reason) == ([], FinishReason.CANCELLED)


async def test_a_draft_that_must_live_ends_the_answer_with_it(text: Vocabulary) -> None:
    assert (await run(NoDrafter("gone"), text))[1].degraded is not None
    with pytest.raises(PeerUnavailableError, match="drafting failed: gone"):
        await run(NoDrafter("gone"), text, draft_must_live=True)
