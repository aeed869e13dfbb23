"""What is left of the logits, against the processors that transformers itself would set up."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from tests.engine.tables import CPU, chooser, numbered
from uag_common.decoding import Choice, Decoding, NoisePosition, Sampling
from uag_common.engine.choose import Chooser
from uag_common.engine.logits import TensorLogits
from uag_common.engine.noise import TokenNoise
from uag_common.errors import InvalidRequestError

SIZE = 40
TABLE = numbered(SIZE)
NOISE = TokenNoise(TABLE, CPU)
END_IDS = (0, 7)


@pytest.fixture(scope="module")
def network() -> PreTrainedModel:
    """Only for the set-up of its processors."""
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=SIZE, hidden_size=8, num_hidden_layers=1, num_attention_heads=1)
    )


@dataclass(frozen=True, slots=True)
class Allowing:
    """A matcher that allows the same ids everywhere."""

    ids: frozenset[int]

    def allowed(self) -> bytes | None:
        return sum(1 << token_id for token_id in self.ids).to_bytes(-(-SIZE // 8), "little")

    def advance(self, token_id: int) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Case:
    decoding: Decoding
    context: list[int]
    answer_start: int
    allowed: frozenset[int] | None


def random_case(dice: random.Random) -> Case:
    def some(value: float) -> float | None:
        return value if dice.random() < 0.5 else None

    biased = dice.sample(range(SIZE), dice.choice([0, 0, 1, 3]))
    sampling = Sampling(
        temperature=dice.choice([0.0, 0.3, 0.7, 1.0, 1.7]),
        top_k=dice.choice([None, None, 1, 5, SIZE, SIZE + 5]),
        top_p=some(dice.choice([0.1, 0.5, 0.9, 1.0])),
        min_p=some(dice.choice([0.0, 0.02, 0.3, 1.0])),
        typical_p=some(dice.choice([0.2, 0.9, 1.0])),
        repetition_penalty=some(dice.choice([0.7, 1.0, 1.3])),
        frequency_penalty=dice.choice([0.0, 0.4, -0.4]),
        presence_penalty=dice.choice([0.0, 0.9]),
        logit_bias=tuple((token_id, dice.uniform(-9, 9)) for token_id in biased),
    )
    context = [dice.randrange(SIZE) for _ in range(dice.randint(1, 30))]
    decoding = Decoding(sampling, dice.choice([0, 0, 4]), END_IDS, top_logprobs=SIZE)
    allowed = frozenset(dice.sample(range(SIZE), 11)) | {1} if dice.random() < 0.3 else None
    return Case(decoding, context, dice.randint(1, len(context)), allowed)


class OpenAiPenalty:
    """Written anew from OpenAI's formula."""

    def __init__(self, sampling: Sampling, answer: Sequence[int]) -> None:
        self.sampling, self.counts = sampling, Counter(answer)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        assert input_ids.shape[0] == 1
        scores = scores.clone()
        for token_id, count in self.counts.items():
            scores[0, token_id] -= count * self.sampling.frequency_penalty
            scores[0, token_id] -= self.sampling.presence_penalty
        return scores


def theirs(network: PreTrainedModel, case: Case, logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities after the processors that transformers sets up for its `generate`."""
    sampling, allowed = case.decoding.sampling, case.allowed
    config = GenerationConfig(
        do_sample=not sampling.greedy,
        temperature=sampling.temperature or None,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        typical_p=sampling.typical_p,
        repetition_penalty=sampling.repetition_penalty,
        sequence_bias={(token,): bias for token, bias in sampling.logit_bias} or None,
        min_new_tokens=case.decoding.min_new_tokens,
        eos_token_id=list(END_IDS),
        num_beams=1,
        num_return_sequences=1,
    )
    network._prepare_special_tokens(config, kwargs_has_attention_mask=True)
    processors = network._get_logits_processor(
        config,
        input_ids_seq_length=case.answer_start,
        prefix_allowed_tokens_fn=None if allowed is None else lambda *_: sorted(allowed),
        logits_processor=[OpenAiPenalty(sampling, case.context[case.answer_start :])],
        device="cpu",
    )
    processed: torch.Tensor = processors(torch.tensor([case.context]), logits)
    return processed[0].log_softmax(-1)


@pytest.mark.parametrize("seed", range(400))
def test_they_are_those_of_transformers(network: PreTrainedModel, seed: int) -> None:
    case = random_case(random.Random(seed))
    torch.manual_seed(seed)
    logits = torch.randn(1, SIZE) * 4
    expected = theirs(network, case, logits)
    matcher = None if case.allowed is None else Allowing(case.allowed)
    chooser = Chooser(case.decoding, case.answer_start, TABLE.pieces, NOISE, matcher)
    # Tokens behind the place are no part of its history.
    ids = [*case.context, 3, 3, 3]
    choice = chooser.choose(TensorLogits.of(logits), 0, ids, len(case.context))
    told = {token.id: token.logprob for token in choice.top}
    assert told.keys() == {at for at, value in enumerate(expected.tolist()) if value > -math.inf}
    assert told == pytest.approx({at: float(expected[at]) for at in told}, abs=1e-5)
    assert choice.logprob == told[choice.id]
    if case.decoding.sampling.greedy:
        assert choice.id == int(expected.argmax())


def test_the_cases_above_try_each_processor() -> None:
    cases = [random_case(random.Random(seed)) for seed in range(400)]
    for name in Sampling.__dataclass_fields__:
        if name not in ("seed", "choice"):
            assert len({getattr(case.decoding.sampling, name) for case in cases}) > 1
    assert any(case.allowed for case in cases)
    assert any(len(case.context) - case.answer_start < 4 for case in cases)


def test_a_greedy_choice_knows_no_filters() -> None:
    filtered = Sampling(top_k=1, top_p=0.1, min_p=1.0, typical_p=0.1)
    choice = chosen(Decoding(filtered, top_logprobs=3), torch.tensor([1.0, 2.0, 3.0]))
    assert [token.id for token in choice.top] == [2, 1, 0]


def test_penalties_count_the_answer_alone() -> None:
    logits = torch.tensor([0.0, 2.0, 1.9, 1.8])
    for sampling in (Sampling(frequency_penalty=0.15), Sampling(presence_penalty=0.15)):
        decoding = Decoding(sampling)
        assert chosen(decoding, logits, [1, 1, 1], answer_start=3).id == 1
        assert chosen(decoding, logits, [1, 1, 1], answer_start=2).id == 2
    twice = Decoding(Sampling(frequency_penalty=0.15))
    assert chosen(twice, logits, [1, 2, 2, 1], answer_start=0).id == 3
    once = Decoding(Sampling(presence_penalty=0.15))
    assert chosen(once, logits, [1, 2, 2, 1], answer_start=0).id == 1


@pytest.mark.parametrize("temperature", [1e-5, 1e-30, 5e-324])
def test_the_least_temperatures_draw_the_most_probable_token(temperature: float) -> None:
    decoding = Decoding(Sampling(temperature=temperature, top_p=0.9, min_p=0.1, typical_p=0.9))
    for seed in range(20):
        sampling = replace(decoding.sampling, seed=seed)
        assert (
            chosen(replace(decoding, sampling=sampling), torch.tensor([9.0, 900.0, 899.9])).id == 1
        )


def test_a_decoding_that_leaves_no_token_is_the_callers_mistake() -> None:
    decoding = Decoding(min_new_tokens=2, end_ids=(1,))
    chooser = Chooser(decoding, 1, TABLE.pieces, NOISE, Allowing(frozenset({1})))
    with pytest.raises(InvalidRequestError, match="leaves no token"):
        chooser.choose(TensorLogits.of(torch.zeros(1, SIZE)), 0, [5, 6], 2)
    assert chooser.choose(TensorLogits.of(torch.zeros(1, SIZE)), 0, [5, 6, 7], 3).id == 1


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(logit_bias=((1, 3e38), (2, 3e38)), repetition_penalty=1e-9),
        Sampling(frequency_penalty=-3e38),
        Sampling(repetition_penalty=1e-45),
    ],
)
def test_numbers_that_overflow_are_the_callers_mistake(
    sampling: Sampling, temperature: float
) -> None:
    decoding = Decoding(replace(sampling, temperature=temperature, top_p=0.9, min_p=0.1))
    with pytest.raises(InvalidRequestError, match="overflow"):
        chosen(decoding, torch.tensor([1.0, 1.0, 2.0]), [1, 1, 1], answer_start=0)


def test_a_chooser_with_a_constraint_is_not_moved() -> None:
    constrained = Chooser(Decoding(), 0, TABLE.pieces, NOISE, Allowing(frozenset({1})))
    with pytest.raises(ValueError, match="constraint"):
        constrained.move(NoisePosition(3))


def chosen(
    decoding: Decoding, logits: torch.Tensor, context: Sequence[int] = (), answer_start: int = 0
) -> Choice:
    rest = torch.full((SIZE - len(logits),), -math.inf)
    rows = TensorLogits.of(torch.cat([logits, rest])[None])
    one = chooser(decoding, TABLE, answer_start, NOISE)
    return one.choose(rows, 0, [*context], len(context))
