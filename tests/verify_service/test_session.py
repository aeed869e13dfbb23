from __future__ import annotations

import pytest

from tests.fakes import CONTEXT_LENGTH, VOCABULARY, FakeModel
from uag_common.context import ContextVersion
from uag_common.errors import InvalidRequestError, PromptTooLongError, StaleContextError
from uag_common.limits import MAX_CANDIDATES
from verify_service.session import VerifySession


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def session(model: FakeModel) -> VerifySession:
    session = VerifySession(model)
    session.check_open((1, 2, 3))
    assert session.open((1, 2, 3)).id == 4
    return session


def version(*ids: int) -> ContextVersion:
    return ContextVersion.of(ids, len(ids))


def test_each_round_is_one_forward_and_runs_the_last_token_once(
    session: VerifySession, model: FakeModel
) -> None:
    assert session.verify((5, 6, 1)).accepted == 2
    session.verify(())
    session.verify((9,))
    assert model.sequence.fed == [(1, 2, 3), (4, 5, 6, 1), (7,), (8, 9)]
    assert model.sequence.ids == [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]


def test_the_next_token_follows_the_last_accepted_one(session: VerifySession) -> None:
    done = session.verify((5, 7))
    assert (done.accepted, done.next.id) == (1, 6)
    assert done.next.logprob == pytest.approx(-0.2)


def test_a_command_for_another_context_is_stale(session: VerifySession) -> None:
    session.check_verify(version(1, 2, 3, 4), (5,))
    for other in (version(1, 2, 3), version(1, 2, 3, 5), version(1, 2, 3, 4, 5)):
        with pytest.raises(StaleContextError):
            session.check_verify(other, (5,))


def test_bad_commands_are_refused_before_the_model_runs(
    session: VerifySession, model: FakeModel
) -> None:
    good = version(1, 2, 3, 4)
    with pytest.raises(InvalidRequestError, match=f"id {VOCABULARY} is outside"):
        session.check_verify(good, (5, VOCABULARY))
    with pytest.raises(InvalidRequestError, match=f"at most {MAX_CANDIDATES}"):
        session.check_verify(good, (5,) * (MAX_CANDIDATES + 1))
    with pytest.raises(PromptTooLongError):
        session.check_verify(good, (5,) * (CONTEXT_LENGTH - 4))
    with pytest.raises(InvalidRequestError, match="open already"):
        session.check_open((1,))
    assert len(model.sequence.fed) == 1


def test_a_session_is_opened_first_and_with_a_prompt_that_fits(model: FakeModel) -> None:
    session = VerifySession(model)
    with pytest.raises(InvalidRequestError, match="opened first"):
        session.check_verify(version(), ())
    with pytest.raises(InvalidRequestError, match="must not be empty"):
        session.check_open(())
    with pytest.raises(InvalidRequestError, match="outside the vocabulary"):
        session.check_open((1, VOCABULARY))
    with pytest.raises(PromptTooLongError):
        session.check_open((1,) * CONTEXT_LENGTH)
    session.check_open((1,) * (CONTEXT_LENGTH - 1))
