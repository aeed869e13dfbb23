"""The engine against transformers itself: any walk of rollbacks gives what a fresh run gives."""

from __future__ import annotations

import random

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedModel

from tests.engine.tables import CPU, numbered
from tests.reference import Reference
from uag_common.decoding import Decoding, Sampling
from uag_common.engine.causal import CausalSequence
from uag_common.engine.choose import Chooser
from uag_common.engine.noise import TokenNoise

TOLERANCE = 1e-4
WINDOW = 8


def sliding() -> PreTrainedModel:
    """A Gemma-3 whose layers alternate between a window of 8 tokens and all of them."""
    torch.manual_seed(1)
    config = Gemma3TextConfig(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=WINDOW,
        max_position_embeddings=256,
        layer_types=["sliding_attention", "full_attention"] * 2,
        initializer_range=0.2,
    )
    return Gemma3ForCausalLM(config).eval()


@pytest.fixture(scope="module", params=["llama", "gpt2", "sliding"])
def network(request: pytest.FixtureRequest) -> PreTrainedModel:
    if request.param == "sliding":
        return sliding()
    return Reference(request.getfixturevalue(request.param)).network


@torch.inference_mode()
def fresh_logits(network: PreTrainedModel, ids: list[int], rows: int) -> torch.Tensor:
    output = network(input_ids=torch.tensor([ids]), use_cache=False)
    return torch.as_tensor(output.logits[0, -rows:].float())


def random_ids(dice: random.Random, network: PreTrainedModel, count: int) -> list[int]:
    return [dice.randrange(network.get_input_embeddings().weight.shape[0]) for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_of_rollbacks_equals_a_fresh_run(network: PreTrainedModel, seed: int) -> None:
    dice, sequence = random.Random(seed), CausalSequence(network)
    sequence.extend(random_ids(dice, network, 12))
    for _ in range(25):
        if dice.random() < 0.6:
            sequence.truncate(dice.randint(1, len(sequence.ids)))
        fresh = random_ids(dice, network, dice.randint(0, 6))
        sequence.extend(fresh)
        logits = sequence.forward(min(len(fresh) + 1, len(sequence.ids)))
        expected = fresh_logits(network, list(sequence.ids), logits.rows)
        assert torch.allclose(logits.tensor, expected, atol=TOLERANCE)
        assert [best.id for best in logits.greatest] == expected.argmax(-1).tolist()


def test_a_walk_notices_a_wrong_cache(network: PreTrainedModel) -> None:
    """The control of the test above: stale entries after a rollback move the logits."""
    sequence = CausalSequence(network)
    sequence.extend([5, 6, 7, 8])
    sequence.forward(1)
    del sequence._ids[2:]
    sequence.extend([9, 9])
    sequence._cached = 2
    expected = fresh_logits(network, [5, 6, 9, 9], 1)
    assert not torch.allclose(sequence.forward(1).tensor, expected, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(4))
def test_forks_and_their_sources_go_their_own_ways(network: PreTrainedModel, seed: int) -> None:
    dice, first = random.Random(seed), CausalSequence(network)
    first.extend(random_ids(dice, network, 12))
    first.forward(1)
    sequences = [first]
    for _ in range(40):
        sequence = dice.choice(sequences)
        if dice.random() < 0.3:
            sequences.append(sequence.fork(dice.randint(0, len(sequence.ids))))
        if dice.random() < 0.4:
            sequence.truncate(dice.randint(0, len(sequence.ids)))
        sequence.extend(random_ids(dice, network, dice.randint(1, 4)))
        if dice.random() < 0.7:
            logits = sequence.forward(1)
            expected = fresh_logits(network, list(sequence.ids), 1)
            assert torch.allclose(logits.tensor, expected, atol=TOLERANCE)


def test_a_fork_runs_only_what_is_not_cached(network: PreTrainedModel) -> None:
    source = CausalSequence(network)
    source.extend([5, 6, 7, 8])
    source.forward(1)
    source.extend([9])
    for length, uncached in ((5, 1), (4, 0), (2, 0), (0, 0)):
        fork = source.fork(length)
        assert fork.ids == [5, 6, 7, 8, 9][:length]
        assert length - fork._cached == uncached
        fork.extend([3])
        logits = fork.forward(1).tensor
        assert torch.allclose(logits, fresh_logits(network, [*fork.ids], 1), atol=TOLERANCE)
    assert source.ids == [5, 6, 7, 8, 9]


def test_a_cache_takes_memory_by_its_tokens(network: PreTrainedModel) -> None:
    sequence = CausalSequence(network)
    assert sequence.cache_bytes == 0
    sequence.extend([5] * 8)
    sequence.forward(1)
    whole = sequence.cache_bytes
    config = network.config
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    assert whole == 8 * 2 * config.num_hidden_layers * heads * size * 4
    assert sequence.fork(4).cache_bytes == whole // 2
    assert sequence.cache_bytes == whole


def test_processed_choices_are_those_of_transformers(network: PreTrainedModel) -> None:
    prompt = [5, 6, 7, 8]
    biased = ((11, 1.5), (12, -3.0))
    sampling = Sampling(repetition_penalty=1.3, logit_bias=biased)
    tensor = torch.tensor([prompt])
    expected = network.generate(
        tensor,
        attention_mask=torch.ones_like(tensor),
        max_new_tokens=24,
        min_new_tokens=6,
        do_sample=False,
        repetition_penalty=1.3,
        sequence_bias={(token_id,): bias for token_id, bias in biased},
        eos_token_id=[11, 13],
        pad_token_id=0,
    )
    table = numbered(network.get_input_embeddings().weight.shape[0])
    chooser = Chooser(
        Decoding(sampling, min_new_tokens=6, end_ids=(11, 13)),
        len(prompt),
        table.pieces,
        TokenNoise(table, CPU),
        None,
    )
    sequence = CausalSequence(network)
    sequence.extend(prompt)
    while len(sequence.ids) < len(prompt) + 24 and sequence.ids[-1] not in (11, 13):
        choice = chooser.choose(sequence.forward(1), 0, sequence.ids, len(sequence.ids))
        sequence.extend([choice.id])
        chooser.advance(choice.id)
    assert sequence.ids == expected[0].tolist()


def test_a_failed_forward_leaves_a_sequence_that_can_go_on(network: PreTrainedModel) -> None:
    sequence = CausalSequence(network)
    sequence.extend([5, 6, 7])
    sequence.forward(1)
    sequence.extend([10**6])
    with pytest.raises(IndexError):
        sequence.forward(1)
    sequence.truncate(3)
    logits = sequence.forward(1).tensor
    assert torch.allclose(logits, fresh_logits(network, [5, 6, 7], 1), atol=TOLERANCE)


@pytest.mark.parametrize("rows", [0, 4])
def test_rows_must_be_there(network: PreTrainedModel, rows: int) -> None:
    sequence = CausalSequence(network)
    sequence.extend([5, 6, 7])
    with pytest.raises(ValueError, match="rows asked"):
        sequence.forward(rows)
