from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.fakes import CONTEXT_LENGTH, VOCABULARY, FakeChooser, FakeModel, count_up
from tests.verify_service.commands import opening
from uag_common.constraint.errors import IllegalTokenError
from uag_common.decoding import Constraint, ConstraintKind, Decoding, PrefixReuse, Sampling
from uag_common.decoding_check import MAX_END_IDS, MAX_LOGIT_BIASES, MAX_PREFIX_KEY_BYTES
from uag_common.errors import InvalidRequestError, PromptTooLongError
from uag_common.model import TokenChooser, run_step
from uag_common.prefix_cache import PrefixCache
from verify_service.open_command import MAX_PROMPT_LOGPROBS, OpenCommand
from verify_service.verifier import Verifier

GOOD = opening((1, 2, 3))
LIMITS = FakeModel().description


def sampled(**options: object) -> OpenCommand:
    return decoded(sampling=replace(Sampling(temperature=1.0), **options))  # type: ignore[arg-type]


def decoded(**options: object) -> OpenCommand:
    return replace(GOOD, decoding=replace(Decoding(), **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (opening(()), "open.prompt_ids"),
        (opening((1, VOCABULARY)), "open.prompt_ids"),
        (opening((1, 2), answer_start=0), "open.answer_start"),
        (opening((1, 2), answer_start=3), "open.answer_start"),
        (opening((1,), prompt_top_logprobs=21), "open.prompt_top_logprobs"),
        (opening((1,), priority=101), "open.priority"),
        (opening((1,), priority=-(2**31)), "open.priority"),
        (opening((1,), prefix=PrefixReuse(b"k" * 257)), "open.prefix.key"),
        (decoded(end_ids=(VOCABULARY,)), "open.end_ids"),
        (decoded(end_ids=(0,) * (MAX_END_IDS + 1)), "open.end_ids"),
        (decoded(top_logprobs=21), "open.top_logprobs"),
        (sampled(temperature=-1.0), "open.sampling.temperature"),
        (sampled(temperature=math.nan), "open.sampling.temperature"),
        (sampled(temperature=math.inf), "open.sampling.temperature"),
        (sampled(temperature=100.1), "open.sampling.temperature"),
        (sampled(top_k=0), "open.sampling.top_k"),
        (sampled(top_p=0.0), "open.sampling.top_p"),
        (sampled(top_p=1.01), "open.sampling.top_p"),
        (sampled(top_p=math.nan), "open.sampling.top_p"),
        (sampled(min_p=-0.1), "open.sampling.min_p"),
        (sampled(min_p=1.1), "open.sampling.min_p"),
        (sampled(typical_p=0.0), "open.sampling.typical_p"),
        (sampled(repetition_penalty=0.0), "open.sampling.repetition_penalty"),
        (sampled(repetition_penalty=math.inf), "open.sampling.repetition_penalty"),
        (sampled(frequency_penalty=math.nan), "open.sampling.frequency_penalty"),
        (sampled(frequency_penalty=-math.inf), "open.sampling.frequency_penalty"),
        (sampled(presence_penalty=101.0), "open.sampling.presence_penalty"),
        (sampled(logit_bias=((VOCABULARY, 1.0),)), "open.sampling.logit_bias"),
        (sampled(logit_bias=((3, math.nan),)), "open.sampling.logit_bias[3]"),
        (sampled(logit_bias=((3, -math.inf),)), "open.sampling.logit_bias[3]"),
        (sampled(logit_bias=((3, 0.0),) * (MAX_LOGIT_BIASES + 1)), "open.sampling.logit_bias"),
    ],
)
def test_what_is_wrong_is_refused_by_name(command: OpenCommand, field: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        command.check(LIMITS)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "command",
    [
        GOOD,
        opening((1,), answer_start=1),
        opening((1, 2, 3), answer_start=1),
        opening((1,) * (CONTEXT_LENGTH - 1), prompt_top_logprobs=20),
        opening((1,), prefix=PrefixReuse(b"k" * MAX_PREFIX_KEY_BYTES), priority=-100),
        decoded(end_ids=(0,) * MAX_END_IDS, min_new_tokens=2**32 - 1, top_logprobs=20),
        sampled(top_k=2**32 - 1, top_p=1.0, min_p=0.0, typical_p=1.0, seed=2**64 - 1),
        sampled(temperature=1e-300, repetition_penalty=100.0, frequency_penalty=-100.0),
        # Filters of a greedy session play no part, but are no harm either.
        decoded(sampling=Sampling(top_k=1, logit_bias=((0, -100.0), (49, 100.0)))),
    ],
)
def test_the_edges_are_allowed(command: OpenCommand) -> None:
    command.check(LIMITS)


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PromptTooLongError):
        opening((1,) * CONTEXT_LENGTH).check(LIMITS)


def test_more_about_a_prompt_than_fits_into_a_message_is_refused() -> None:
    limits = replace(LIMITS, context_length=10**7)
    prompt = (1,) * (MAX_PROMPT_LOGPROBS // 21)
    opening(prompt, prompt_top_logprobs=20).check(limits)
    opening(prompt * 21).check(limits)
    with pytest.raises(InvalidRequestError, match=r"open\.prompt_top_logprobs"):
        opening((*prompt, 1), prompt_top_logprobs=20).check(limits)


def test_an_answer_that_leaves_no_token_is_named_by_its_path() -> None:
    def refuse(_: Sequence[int]) -> int:
        raise InvalidRequestError("min_new_tokens", "leaves no token")

    model = FakeModel(refuse)
    verifier = Verifier(model, PrefixCache(0), GOOD, GOOD.new_chooser(model))
    with pytest.raises(InvalidRequestError, match=r"open\.min_new_tokens"):
        run_step(model, verifier.open())


def test_an_answer_that_breaks_its_constraint_is_refused() -> None:
    class Breaking(FakeChooser):
        def advance(self, token_id: int) -> None:
            raise IllegalTokenError(f"token {token_id} was chosen")

    class Constrained(FakeModel):
        def new_chooser(self, decoding: Decoding, answer_start: int) -> FakeChooser:
            return Breaking(count_up, decoding, answer_start)

    opening((1, 2)).new_chooser(Constrained())
    with pytest.raises(InvalidRequestError, match=r"open\.prompt_ids: token 2"):
        opening((1, 2), answer_start=1).new_chooser(Constrained())


def test_a_constraint_that_does_not_compile_is_named_by_its_path() -> None:
    class Refusing(FakeModel):
        def new_chooser(self, decoding: Decoding, answer_start: int) -> TokenChooser:  # type: ignore[override]  # noqa: ARG002
            raise InvalidRequestError("constraint.regex", "has no end")

    command = decoded(constraint=Constraint(ConstraintKind.REGEX, ("(",)))
    with pytest.raises(InvalidRequestError) as refused:
        command.new_chooser(Refusing())
    assert refused.value.field == "open.constraint.regex"
    assert refused.value.problem == "has no end"
