from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.cached_model import CachedModel, continuation
from tests.fakes import CONTEXT_LENGTH, VOCABULARY, FakeModel
from tests.verify_service.commands import opening, version
from uag_common.decoding import Decoding, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError, PromptTooLongError, StaleContextError
from uag_common.limits import MAX_CANDIDATES
from uag_common.model import Model, run_step
from uag_common.prefix_cache import PrefixCache
from verify_service.open_command import OpenCommand
from verify_service.verifier import PROMPT_ROWS, Opened, Verifier

SHARED = PrefixReuse(b"key")
KEPT = PrefixReuse(b"key", keep=True)


def opened(
    model: Model, command: OpenCommand, prefixes: PrefixCache | None = None
) -> tuple[Verifier, Opened]:
    command.check(model.description)
    cache = PrefixCache(10**6) if prefixes is None else prefixes
    verifier = Verifier(model, cache, command, command.new_chooser(model))
    return verifier, run_step(model, verifier.open())


@pytest.fixture
def model() -> FakeModel:
    return FakeModel()


@pytest.fixture
def verifier(model: FakeModel) -> Verifier:
    verifier, opening_ = opened(model, opening((1, 2, 3)))
    assert opening_ == Opened(first=opening_.first, cached_tokens=0, prompt=())
    assert opening_.first.id == 4
    return verifier


def test_each_round_is_one_forward_and_runs_the_last_token_once(
    verifier: Verifier, model: FakeModel
) -> None:
    assert [choice.id for choice in run_step(model, verifier.verify((5, 6, 1))).accepted] == [5, 6]
    run_step(model, verifier.verify(()))
    run_step(model, verifier.verify((9,)))
    assert model.sequence.fed == [(1, 2, 3), (4, 5, 6, 1), (7,), (8, 9)]
    assert model.sequence.ids == [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]
    assert model.chooser.answer == [4, 5, 6, 7, 8, 9, 1]


def test_the_next_token_follows_the_last_accepted_one(verifier: Verifier, model: FakeModel) -> None:
    done = run_step(model, verifier.verify((5, 7)))
    assert ([choice.id for choice in done.accepted], done.next.id) == ([5], 6)


def test_log_probabilities_are_told_if_asked_for(model: FakeModel) -> None:
    verifier, _ = opened(model, opening((1, 2, 3), decoding=Decoding(top_logprobs=1)))
    done = run_step(model, verifier.verify((5, 7)))
    told = [choice.logprob for choice in (*done.accepted, done.next)]
    assert told == pytest.approx([-0.1, -0.2])
    assert [token.id for token in done.next.top] == [6]


def test_each_place_has_the_history_that_it_really_has() -> None:
    """The chooser refuses a history that it was not told of, and a cache of another context."""
    wanted = continuation((1, 2, 3), 30, answer_start=3, seed=0)
    model = CachedModel()
    verifier, start = opened(model, opening((1, 2, 3)))
    got = [start.first.id]
    while len(got) < 20:
        # Right for two places, wrong at the third, and more behind it.
        guess = [*wanted[len(got) : len(got) + 2], 0, *wanted[len(got) + 3 : len(got) + 5]]
        done = run_step(model, verifier.verify(guess))
        assert len(done.accepted) == 2
        got += [choice.id for choice in (*done.accepted, done.next)]
    assert got == wanted[: len(got)]


def test_an_answer_opened_anew_in_its_middle_goes_on_as_if_it_had_not_been() -> None:
    decoding = Decoding(sampling=Sampling(temperature=1.0, seed=7), top_logprobs=0)
    wanted = continuation((1, 2, 3), 12, answer_start=3, seed=7)
    model = CachedModel()
    for cut in range(10):
        command = opening((1, 2, 3, *wanted[:cut]), answer_start=3, decoding=decoding)
        verifier, start = opened(model, command)
        done = run_step(model, verifier.verify(wanted[cut + 1 : cut + 2]))
        got = [start.first.id, *(choice.id for choice in (*done.accepted, done.next))]
        assert got == wanted[cut : cut + 3]


def test_nothing_that_follows_an_end_fails() -> None:
    model = FakeModel(lambda _: 0)
    verifier, start = opened(model, opening((1,), decoding=Decoding(end_ids=(0,))))
    assert start.first.id == 0
    assert len(run_step(model, verifier.verify((0, 0, 5))).accepted) == 2


@pytest.mark.parametrize("length", [1, 2, PROMPT_ROWS, PROMPT_ROWS + 1, 2 * PROMPT_ROWS + 2])
def test_the_prompt_is_told_of_token_by_token_in_bounded_chunks(length: int) -> None:
    model = CachedModel()
    verifier = Verifier(
        model,
        PrefixCache(0),
        opening([1, 2] * (length // 2) + [1] * (length % 2), prompt_top_logprobs=3),
        model.new_chooser(Decoding(), length),
    )
    start = run_step(model, verifier.open())
    assert [choice.logprob for choice in start.prompt] == list(range(1, length))
    assert [choice.id for choice in start.prompt] == ([2, 1] * length)[: length - 1]
    assert max(model.runs) <= PROMPT_ROWS
    assert sum(model.runs) == length


def test_a_session_begins_with_what_a_running_one_has_run_of_its_prompt() -> None:
    model, cache = CachedModel(), PrefixCache(0)
    prompt = [1, 2, 3, 1, 2, 3]
    first, _ = opened(model, opening(prompt, prefix=SHARED), cache)
    answers = []
    for choice in range(3):
        decoding = Decoding(sampling=Sampling(temperature=1.0, seed=choice))
        model.runs.clear()
        _, start = opened(model, opening(prompt, decoding=decoding, prefix=SHARED), cache)
        assert (start.cached_tokens, model.runs) == (5, [1])
        answers.append(start.first.id)
        run_step(model, first.verify((1, 2)))
    assert answers == [continuation(prompt, 1, 6, seed)[0] for seed in range(3)]


def test_a_later_turn_begins_with_what_was_kept() -> None:
    model, cache = CachedModel(), PrefixCache(10**6)
    first, start = opened(model, opening((1, 2, 3), prefix=KEPT), cache)
    done = run_step(model, first.verify(()))
    first.end()
    # The last token was committed, but never run.
    said = (1, 2, 3, start.first.id, done.next.id)
    assert (cache.kept_prefixes, cache.kept_bytes) == (1, 400)
    _, start = opened(model, opening((*said, 5, 6), prefix=SHARED), cache)
    assert start.cached_tokens == 4


def test_what_is_asked_of_the_prompt_is_not_taken_from_a_cache() -> None:
    model, cache = CachedModel(), PrefixCache(0)
    opened(model, opening((1, 2, 3), prefix=SHARED), cache)
    command = opening((1, 2, 3), prefix=SHARED, prompt_top_logprobs=0)
    _, start = opened(model, command, cache)
    assert (start.cached_tokens, len(start.prompt)) == (0, 2)


def test_a_failed_step_keeps_nothing() -> None:
    model, cache = FakeModel(lambda context: context[-1] + 1), PrefixCache(10**6)
    verifier, _ = opened(model, opening((1, 2, 3), prefix=KEPT), cache)

    def fail(context: Sequence[int]) -> int:
        raise RuntimeError(len(context))

    model.chooser.next_token = fail
    with pytest.raises(RuntimeError):
        run_step(model, verifier.verify((5,)))
    verifier.end()
    assert cache.kept_prefixes == 0
    assert cache.fork((1, 2, 3, 4), SHARED) is None


def test_a_command_for_another_context_is_stale(verifier: Verifier) -> None:
    verifier.check_verify(version((1, 2, 3, 4)), (5,))
    for other in ((1, 2, 3), (1, 2, 3, 5), (1, 2, 3, 4, 5)):
        with pytest.raises(StaleContextError):
            verifier.check_verify(version(other), (5,))


def test_bad_candidates_are_refused_before_the_model_runs(
    verifier: Verifier, model: FakeModel
) -> None:
    good = version((1, 2, 3, 4))
    with pytest.raises(InvalidRequestError, match=f"id {VOCABULARY} is outside"):
        verifier.check_verify(good, (5, VOCABULARY))
    with pytest.raises(InvalidRequestError, match=f"at most {MAX_CANDIDATES}"):
        verifier.check_verify(good, (5,) * (MAX_CANDIDATES + 1))
    with pytest.raises(PromptTooLongError):
        verifier.check_verify(good, (5,) * (CONTEXT_LENGTH - 4))
    assert len(model.sequence.fed) == 1
