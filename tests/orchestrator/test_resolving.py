"""What a request comes to: defaults, seeds, ids of its own, and who may share its caches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.request import (
    AnswerRequest,
    SamplingOptions,
    SpeculationMode,
    SpeculationOptions,
    StoppingOptions,
    TextPrompt,
)
from orchestrator.resolving import Defaults, Resolved, check_prompt_length, identified, resolve
from tests.fakes import CONTEXT_LENGTH, EOS, VOCABULARY, FakeModel
from uag_common.decoding import PrefixReuse
from uag_common.errors import InvalidRequestError, PromptTooLongError

REQUEST = AnswerRequest(TextPrompt("a"))
SAMPLED = replace(REQUEST, sampling=SamplingOptions(temperature=0.7))
TARGET = FakeModel().description


def resolved(request: AnswerRequest, draft_tokens: int = 5, *, share: bool = False) -> Resolved:
    defaults = Defaults(
        max_new_tokens=30,
        draft_tokens=draft_tokens,
        forced_draft_tokens=3,
        lookup_tokens=7,
        share_prefixes=share,
    )
    return resolve(request, defaults, TARGET)


def test_what_is_not_given_is_the_servers() -> None:
    whole = resolved(REQUEST)
    assert (whole.max_new_tokens, whole.draft_tokens, whole.n) == (30, 5, 1)
    assert whole.request.max_new_tokens == 30
    assert whole.request.speculation.draft_tokens == 5
    assert whole.request.sampling.temperature == 0.0
    assert whole.request.sampling.seed is None


def test_a_seed_is_drawn_where_tokens_are_and_told() -> None:
    seeds = {resolved(SAMPLED).request.sampling.seed for _ in range(20)}
    assert len(seeds) == 20
    given = replace(SAMPLED, sampling=SamplingOptions(temperature=0.7, seed=5))
    assert resolved(given).decoding(3).sampling.seed == 5
    assert resolved(given).decoding(3).sampling.choice == 3


def test_a_request_without_an_id_gets_one() -> None:
    assert identified(replace(REQUEST, request_id="mine")).request_id == "mine"
    assert len({identified(REQUEST).request_id for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("mode", "given", "server", "expected"),
    [
        (SpeculationMode.AUTO, None, 5, 5),
        (SpeculationMode.AUTO, 0, 5, 0),
        (SpeculationMode.AUTO, 9, 5, 9),
        (SpeculationMode.OFF, None, 5, 0),
        (SpeculationMode.FORCE, None, 5, 3),
        (SpeculationMode.FORCE, None, 0, 3),
        (SpeculationMode.FORCE, 2, 0, 2),
    ],
)
def test_how_many_tokens_are_drafted(
    mode: SpeculationMode, given: int | None, server: int, expected: int
) -> None:
    request = replace(REQUEST, speculation=SpeculationOptions(draft_tokens=given, mode=mode))
    assert resolved(request, server).draft_tokens == expected


def test_the_ids_that_end_an_answer() -> None:
    stops = replace(REQUEST, stopping=StoppingOptions(stop_token_ids=(7, EOS, 7)))
    assert resolved(stops).end_ids == (EOS, 7)
    assert resolved(stops).eos_ids == frozenset([EOS])
    ignored = replace(REQUEST, stopping=StoppingOptions(ignore_eos=True))
    assert resolved(ignored).end_ids == ()
    assert resolved(ignored).eos_ids == frozenset()


def test_the_draft_gets_no_bias() -> None:
    """Its ids are the target's."""
    biased = SamplingOptions(temperature=0.7, top_k=3, logit_bias=((1, 2.0),))
    whole = resolved(replace(REQUEST, sampling=biased))
    assert whole.decoding(0).sampling.logit_bias == ((1, 2.0),)
    assert whole.draft_sampling(0).logit_bias == ()
    assert whole.draft_sampling(0).top_k == 3


def key(session_id: str, salt: str = "", n: int = 1) -> PrefixReuse:
    return resolved(replace(SAMPLED, session_id=session_id, cache_salt=salt, n=n)).prefix


def test_caches_are_shared_within_a_conversation_and_a_salt_alone() -> None:
    assert key("") == PrefixReuse()
    assert key("a") == key("a", n=4) != key("b")
    assert key("a").keep
    keys = [
        key("ab", "c"),
        key("b", "ca"),
        key("a", "bc"),
        key("abc"),
        key("a", "b"),
        key("b", "a"),
    ]
    assert len({reuse.key for reuse in keys}) == len(keys)


def test_where_requests_share_a_salt_alone_parts_them() -> None:
    def shared(session_id: str, salt: str, n: int = 1) -> PrefixReuse:
        request = replace(SAMPLED, session_id=session_id, cache_salt=salt, n=n)
        return resolved(request, share=True).prefix

    assert shared("", "") == shared("a", "") == shared("b", "", n=3)
    assert shared("", "s") == shared("a", "s") != shared("", "") != shared("", "t")
    assert shared("", "").keep


def test_the_answers_of_a_request_share_with_nobody_else() -> None:
    assert key("", n=2).key != key("", n=2).key
    assert not key("", n=2).keep


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (replace(REQUEST, max_new_tokens=CONTEXT_LENGTH + 1), "max_new_tokens"),
        (
            replace(REQUEST, max_new_tokens=3, stopping=StoppingOptions(min_new_tokens=4)),
            "stopping.min_new_tokens",
        ),
        (
            replace(REQUEST, stopping=StoppingOptions(stop_token_ids=(VOCABULARY,))),
            "stopping.stop_token_ids",
        ),
        (
            replace(REQUEST, sampling=SamplingOptions(logit_bias=((VOCABULARY, 1.0),))),
            "sampling.logit_bias",
        ),
    ],
)
def test_what_does_not_fit_the_target_is_named(request_: AnswerRequest, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        resolved(request_)
    assert refused.value.field == field


def test_the_prompt_must_leave_room_for_an_answer() -> None:
    check_prompt_length(CONTEXT_LENGTH - 1, TARGET)
    with pytest.raises(PromptTooLongError):
        check_prompt_length(CONTEXT_LENGTH, TARGET)
    with pytest.raises(InvalidRequestError):
        check_prompt_length(0, TARGET)
