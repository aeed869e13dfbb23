"""Small networks that divide by four processes, with random weights, by what their plans differ in.
Knows no processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from tests.engine.networks import CAPPED, LONG_ROPE

VOCABULARY = 402
"""Not divisible by four, as those of some models are not."""
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}


def llama() -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**SHAPE))


def mixtral() -> PreTrainedModel:
    """Each token chooses two of four experts, of which each process has a part."""
    return MixtralForCausalLM(MixtralConfig(**SHAPE, num_local_experts=4, sliding_window=None))


def gemma2() -> PreTrainedModel:
    """Windows, soft caps, and one matrix for both embeddings."""
    return Gemma2ForCausalLM(Gemma2Config(**SHAPE, **CAPPED))


def phi3() -> PreTrainedModel:
    """Fused projections, which are gathered, so that each process has all heads; two regimes of
    rotary embeddings."""
    return Phi3ForCausalLM(Phi3Config(**SHAPE, **LONG_ROPE))


def qwen2() -> PreTrainedModel:
    """Biases, and one matrix for both embeddings."""
    return Qwen2ForCausalLM(Qwen2Config(**SHAPE, tie_word_embeddings=True))


def large() -> PreTrainedModel:
    """240 MB, so that what else a process holds does not hide what it holds of this."""
    shape = SHAPE | {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4}
    return LlamaForCausalLM(LlamaConfig(**shape | {"initializer_range": 0.02}))


KINDS: tuple[Callable[[], PreTrainedModel], ...] = (llama, mixtral, gemma2, phi3, qwen2)


def save(kind: Callable[[], PreTrainedModel], folder: Path) -> None:
    """In float32, below the folder in one of its own."""
    torch.manual_seed(1)
    network = kind()
    with torch.no_grad():
        # Biases and norms as a trained model has them, not zero and one.
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    network.save_pretrained(folder / kind.__name__)
