"""The engine against transformers itself: any walk of rollbacks gives what a fresh run gives."""

from __future__ import annotations

import random

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedModel

from tests.reference import Reference
from uag_common.engine.causal import CausalSequence
from uag_common.engine.choose import choose

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


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_of_rollbacks_equals_a_fresh_run(network: PreTrainedModel, seed: int) -> None:
    dice, sequence = random.Random(seed), CausalSequence(network)
    vocabulary = network.get_input_embeddings().weight.shape[0]
    sequence.extend([dice.randrange(vocabulary) for _ in range(12)])
    for _ in range(25):
        if dice.random() < 0.6:
            sequence.truncate(dice.randint(1, len(sequence.ids)))
        fresh = [dice.randrange(vocabulary) for _ in range(dice.randint(0, 6))]
        sequence.extend(fresh)
        rows = sequence.choose(min(len(fresh) + 1, len(sequence.ids)))
        expected = fresh_logits(network, list(sequence.ids), len(rows.ids))
        assert torch.allclose(rows.logits, expected, atol=TOLERANCE)
        assert rows.ids == tuple(expected.argmax(-1).tolist())


def test_a_walk_notices_a_wrong_cache(network: PreTrainedModel) -> None:
    """The control of the test above: stale entries after a rollback move the logits."""
    sequence = CausalSequence(network)
    sequence.extend([5, 6, 7, 8])
    sequence.choose(1)
    del sequence._ids[2:]
    sequence.extend([9, 9])
    sequence._cached = 2
    rows = sequence.choose(1)
    expected = fresh_logits(network, [5, 6, 9, 9], 1)
    assert not torch.allclose(rows.logits, expected, atol=TOLERANCE)


def test_an_exact_tie_goes_to_the_lowest_id() -> None:
    logits = torch.tensor([[0.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]], dtype=torch.bfloat16)
    rows = choose(logits)
    assert rows.ids == (1, 0)
    assert rows.logprob(1) == pytest.approx(-1.3863, abs=1e-4)


def test_a_failed_forward_leaves_a_sequence_that_can_go_on(network: PreTrainedModel) -> None:
    sequence = CausalSequence(network)
    sequence.extend([5, 6, 7])
    sequence.choose(1)
    sequence.extend([10**6])
    with pytest.raises(IndexError):
        sequence.choose(1)
    sequence.truncate(3)
    rows = sequence.choose(1)
    assert torch.allclose(rows.logits, fresh_logits(network, [5, 6, 7], 1), atol=TOLERANCE)


@pytest.mark.parametrize("rows", [0, 4])
def test_rows_must_be_there(network: PreTrainedModel, rows: int) -> None:
    sequence = CausalSequence(network)
    sequence.extend([5, 6, 7])
    with pytest.raises(ValueError, match="rows asked"):
        sequence.choose(rows)
