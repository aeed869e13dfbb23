"""The round loop with a target that counts up and drafters that guess: what is cut and counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.drafter import NoDrafter
from orchestrator.events import Degraded, Delta, Finished, FinishReason, TokenSource
from orchestrator.round_loop import AnswerLimits, RoundLoop
from orchestrator.sessions import Chosen, ExchangeTime
from orchestrator.side import Side
from orchestrator.tally import Tally
from orchestrator.text_stream import TextStream
from tests.threaded_server import TokenizerOnly
from uag_common.context import ContextVersion
from uag_common.errors import PeerUnavailableError
from uag_common.worker import StepTime

PROMPT = (10, 11)
EOS = 17
SPENT = ExchangeTime(0.3, StepTime(queue_seconds=0.05, forward_seconds=0.2))


class CountingTarget:
    """After n comes n + 1. Fails in round `dies_in`."""

    def __init__(self, dies_in: int | None = None) -> None:
        self.context: list[int] = []
        self.closed = False
        self._dies_in = dies_in

    async def open(self, prompt_ids: Sequence[int]) -> Chosen:
        self.context = [*prompt_ids, prompt_ids[-1] + 1]
        return Chosen(0, self.context[-1], SPENT)

    async def verify(
        self, round_number: int, committed: ContextVersion, candidates: Sequence[int]
    ) -> Chosen:
        if round_number == self._dies_in:
            raise PeerUnavailableError("the target is gone")
        committed.check_whole(self.context)
        right = range(self.context[-1] + 1, self.context[-1] + 1 + len(candidates))
        pairs = enumerate(zip(candidates, right, strict=True))
        accepted = next((i for i, (guess, true) in pairs if guess != true), len(candidates))
        self.context += [*candidates[:accepted], self.context[-1] + accepted + 1]
        return Chosen(accepted, self.context[-1], SPENT)

    def close(self) -> None:
        self.closed = True


class Guesser:
    """Guesses `right` ids rightly and then one wrongly, if that is told."""

    degraded: Degraded | None = None

    def __init__(self, right: int, *, wrong: bool = False) -> None:
        self.last = PROMPT[-1]
        self.closed = False
        self._right, self._wrong = right, wrong

    def start(self) -> None: ...

    async def propose(self, round_number: int, room: int) -> tuple[int, ...]:
        del round_number
        guesses = [*range(self.last + 1, self.last + 1 + self._right)]
        return tuple([*guesses, *([99] if self._wrong else [])][: max(0, room)])

    def commit(self, ids: Sequence[int]) -> None:
        self.last = ids[-1]

    def close(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def text(llama: Path) -> TextStream:
    model = TokenizerOnly.read(llama, 600)
    side = Side.build(model.description, model.tokenizer_files)
    return TextStream(side.vocabulary, at_text_start=True)


async def run(
    drafter: Guesser | NoDrafter,
    text: TextStream,
    *,
    max_new_tokens: int = 6,
    context_length: int = 100,
    eos_ids: frozenset[int] = frozenset(),
    target: CountingTarget | None = None,
) -> tuple[list[Delta], Finished]:
    limits = AnswerLimits(max_new_tokens, context_length, eos_ids)
    loop = RoundLoop(PROMPT, limits, target or CountingTarget(), drafter, text, Tally())
    events = [event async for event in loop.run()]
    *deltas, finished = events
    assert isinstance(finished, Finished)
    return [delta for delta in deltas if isinstance(delta, Delta)], finished


def ids(deltas: list[Delta]) -> list[int]:
    return [token.id for delta in deltas for token in delta.tokens]


@pytest.mark.parametrize("right", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("wrong", [True, False])
async def test_the_answer_is_the_targets_whatever_is_guessed(
    text: TextStream, right: int, wrong: bool
) -> None:
    deltas, finished = await run(Guesser(right, wrong=wrong), text)
    assert ids(deltas) == [12, 13, 14, 15, 16, 17]
    assert finished.reason is FinishReason.MAX_TOKENS
    assert (finished.prompt_tokens, finished.completion_tokens) == (2, 6)


async def test_sources_tell_who_said_a_token_first(text: TextStream) -> None:
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
    text: TextStream, eos: int, right: int
) -> None:
    deltas, finished = await run(Guesser(right), text, max_new_tokens=20, eos_ids=frozenset([eos]))
    assert ids(deltas) == [*range(12, eos + 1)]
    assert finished.reason is FinishReason.EOS
    counts = finished.speculation
    drafted = sum(t.source is TokenSource.DRAFT for delta in deltas for t in delta.tokens)
    assert counts.candidates_accepted == drafted <= counts.candidates_examined


async def test_an_eos_at_the_last_token_is_an_eos(text: TextStream) -> None:
    _, finished = await run(Guesser(9), text, eos_ids=frozenset([EOS]))
    assert finished.reason is FinishReason.EOS


@pytest.mark.parametrize("right", [0, 3, 9])
async def test_a_full_context_ends_the_answer(text: TextStream, right: int) -> None:
    deltas, finished = await run(Guesser(right), text, max_new_tokens=50, context_length=9)
    assert ids(deltas) == [*range(12, 19)]
    assert finished.reason is FinishReason.CONTEXT_LIMIT


async def test_counts_and_times_add_up(text: TextStream) -> None:
    _, finished = await run(Guesser(2, wrong=True), text, max_new_tokens=7)
    counts, spent = finished.speculation, finished.time
    assert (counts.rounds, counts.plain_steps) == (2, 0)
    assert (counts.candidates_proposed, counts.candidates_examined) == (5, 5)
    assert (counts.candidates_accepted, counts.accepted_lengths) == (4, (0, 0, 2))
    assert spent.prefill_seconds == pytest.approx(0.2)
    assert spent.verify_seconds == pytest.approx(0.4)
    assert spent.queue_seconds == pytest.approx(0.15)
    assert spent.network_seconds == pytest.approx(0.15)


async def test_a_lost_target_ends_the_request_and_frees_both_sessions(text: TextStream) -> None:
    target, drafter = CountingTarget(dies_in=2), Guesser(1)
    with pytest.raises(PeerUnavailableError, match="the target is gone"):
        await run(drafter, text, target=target)
    assert target.closed
    assert drafter.closed


async def test_a_client_that_leaves_frees_both_sessions(text: TextStream) -> None:
    target, drafter = CountingTarget(), Guesser(1)
    limits = AnswerLimits(50, 100, frozenset())
    events = RoundLoop(PROMPT, limits, target, drafter, text, Tally()).run()
    await anext(events)
    await events.aclose()
    assert target.closed
    assert drafter.closed


async def test_what_became_of_the_draft_is_told(text: TextStream) -> None:
    gone = Degraded("the draft is gone", 0)
    deltas, finished = await run(NoDrafter(gone), text)
    assert ids(deltas) == [12, 13, 14, 15, 16, 17]
    assert finished.degraded == gone
