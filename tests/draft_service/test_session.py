from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from draft_service.drafter import ProposalEnd, ProposeCommand
from draft_service.session import DraftSession
from tests.fakes import CONTEXT_LENGTH, EOS, VOCABULARY, FakeModel, count_up
from uag_common.context import ContextVersion
from uag_common.errors import InvalidRequestError, PromptTooLongError, StaleContextError
from uag_common.limits import MAX_DRAFT_TOKENS
from uag_common.worker import Worker

CONTEXT = (1, 2, 3)


def command(
    keep: Sequence[int], append: Sequence[int] = (), max_tokens: int = 3, floor: float = 0.0
) -> ProposeCommand:
    version = ContextVersion.of(keep, len(keep))
    return ProposeCommand(len(keep), version, tuple(append), max_tokens, floor)


async def opened(model: FakeModel) -> DraftSession:
    session = DraftSession(model, Worker("test"))
    await session.open(CONTEXT)
    return session


async def test_a_proposal_goes_on_from_the_context() -> None:
    model = FakeModel()
    proposal = await (await opened(model)).propose(command(CONTEXT))
    assert [token.id for token in proposal.tokens] == [4, 5, 6]
    assert proposal.end is ProposalEnd.LENGTH
    assert all(0 < token.probability < 1 for token in proposal.tokens)
    assert model.sequence.fed == [(1, 2), (3,), (4,), (5,)]


async def test_rollback_keeps_what_is_right_and_runs_at_least_one_token() -> None:
    model = FakeModel()
    session = await opened(model)
    await session.propose(command(CONTEXT))
    proposal = await session.propose(command((1, 2, 3, 4, 5), max_tokens=1))
    assert [token.id for token in proposal.tokens] == [6]
    assert model.sequence.fed[-1] == (5,)
    proposal = await session.propose(command((1, 2, 3, 4), append=(7,), max_tokens=2))
    assert [token.id for token in proposal.tokens] == [8, 9]
    assert model.sequence.ids == [1, 2, 3, 4, 7, 8, 9]
    assert model.sequence.fed[-2:] == [(7,), (8,)]


async def test_a_proposal_ends_at_its_eos() -> None:
    model = FakeModel(lambda context: EOS if context[-1] == 5 else count_up(context))
    proposal = await (await opened(model)).propose(command(CONTEXT, max_tokens=9))
    assert [token.id for token in proposal.tokens] == [4, 5, EOS]
    assert proposal.end is ProposalEnd.EOS


async def test_a_proposal_ends_at_low_probability_without_that_token() -> None:
    model = FakeModel()
    proposal = await (await opened(model)).propose(command(CONTEXT, floor=0.95))
    assert (proposal.tokens, proposal.end) == ((), ProposalEnd.LOW_PROBABILITY)
    assert model.sequence.ids == [1, 2, 3]


async def test_a_proposal_ends_where_the_context_is_full() -> None:
    model = FakeModel()
    append = [4] * (CONTEXT_LENGTH - 5)
    proposal = await (await opened(model)).propose(command(CONTEXT, append, max_tokens=9))
    assert len(proposal.tokens) == 2
    assert proposal.end is ProposalEnd.CONTEXT_LIMIT


async def test_a_stale_command_changes_nothing() -> None:
    model = FakeModel()
    session = await opened(model)
    for stale in (command((1, 2, 3, 4)), command((1, 5))):
        with pytest.raises(StaleContextError):
            await session.propose(stale)
    assert model.sequence.ids == [1, 2, 3]


async def test_bad_commands_are_refused_before_the_model_runs() -> None:
    model = FakeModel()
    session = await opened(model)
    good = command(CONTEXT)
    for bad, words in (
        (replace(good, max_tokens=0), "from 1 to"),
        (replace(good, max_tokens=MAX_DRAFT_TOKENS + 1), "from 1 to"),
        (replace(good, min_probability=float("nan")), "from 0 to 1"),
        (replace(good, append_ids=(VOCABULARY,)), "outside the vocabulary"),
        (replace(good, keep=2), "length"),
        (command(()), "must not become empty"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            await session.propose(bad)
    with pytest.raises(PromptTooLongError):
        await session.propose(command(CONTEXT, [1] * CONTEXT_LENGTH))
    with pytest.raises(InvalidRequestError, match="open already"):
        await session.open(CONTEXT)
    with pytest.raises(InvalidRequestError, match="opened first"):
        await DraftSession(model, Worker("test")).propose(good)
    assert model.sequence.fed == []
