from __future__ import annotations

import math
from dataclasses import replace

import pytest

from draft_service.commands import OpenCommand, ProposeCommand
from tests.draft_service.commands import DRAWN, GREEDY, opening, proposal
from tests.fakes import CONTEXT_LENGTH, VOCABULARY, FakeModel
from uag_common.decoding import NoisePosition, PrefixReuse, Sampling
from uag_common.errors import InvalidRequestError, PromptTooLongError
from uag_common.limits import MAX_DRAFT_TOKENS

LIMITS = FakeModel().description
CONTEXT = (1, 2, 3)


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (opening(()), "open.context_ids"),
        (opening((VOCABULARY,)), "open.context_ids"),
        (opening(CONTEXT, answer_start=4), "open.answer_start"),
        (opening(CONTEXT, sampling=Sampling(temperature=-1.0)), "open.sampling.temperature"),
        (
            opening(CONTEXT, sampling=Sampling(logit_bias=((VOCABULARY, 0.0),))),
            "open.sampling.logit_bias",
        ),
        (opening(CONTEXT, prefix=PrefixReuse(b"k" * 257)), "open.prefix.key"),
        (opening(CONTEXT, priority=101), "open.priority"),
    ],
)
def test_a_wrong_opening_is_refused_by_name(command: OpenCommand, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        command.check(LIMITS)
    assert refused.value.field == field


def test_a_context_of_the_answer_alone_is_allowed() -> None:
    opening(CONTEXT, answer_start=0).check(LIMITS)
    opening((1,) * CONTEXT_LENGTH).check(LIMITS)
    with pytest.raises(PromptTooLongError):
        opening((1,) * (CONTEXT_LENGTH + 1)).check(LIMITS)


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (proposal(CONTEXT, max_tokens=65), "propose.max_tokens"),
        (proposal(CONTEXT, max_tokens=MAX_DRAFT_TOKENS + 1), "propose.max_tokens"),
        (proposal(CONTEXT, min_probability=math.nan), "propose.min_probability"),
        (proposal(CONTEXT, min_probability=1.1), "propose.min_probability"),
        (proposal(CONTEXT, (VOCABULARY,)), "propose.append_ids"),
        (replace(proposal(CONTEXT), keep=2), "propose.kept.length"),
        (proposal(()), "propose"),
    ],
)
def test_a_wrong_proposal_is_refused_by_name(command: ProposeCommand, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        command.check(LIMITS, GREEDY)
    assert refused.value.field == field


def test_a_position_is_needed_where_tokens_are_drawn() -> None:
    proposal(CONTEXT).check(LIMITS, GREEDY)
    proposal(CONTEXT, position=NoisePosition()).check(LIMITS, DRAWN)
    with pytest.raises(InvalidRequestError, match=r"propose\.position"):
        proposal(CONTEXT).check(LIMITS, DRAWN)


def test_a_context_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PromptTooLongError):
        proposal(CONTEXT, (1,) * CONTEXT_LENGTH).check(LIMITS, GREEDY)
