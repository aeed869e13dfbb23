"""Small networks with random weights for tests of the engine, by the kinds of their attention."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedModel,
)

from uag_common.engine.caches import Asked, CacheLimits, contexts_of
from uag_common.engine.contexts import Contexts
from uag_common.kv.budget import Budget

VOCABULARY = 400
WINDOW = 8
BOUNDARY = 24
"""Of the two regimes of rotary embeddings in `long_rope`."""
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}
CAPPED = {
    "head_dim": 8,
    "sliding_window": WINDOW,
    "attn_logit_softcapping": 2.0,
    "final_logit_softcapping": 5.0,
    "query_pre_attn_scalar": 8,
}
"""Of Gemma 2: windows, and soft caps on the logits of attention and on the last ones."""
LONG_ROPE = {
    "original_max_position_embeddings": BOUNDARY,
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [1.0, 1.5, 2.0, 4.0],
        "original_max_position_embeddings": BOUNDARY,
    },
    "pad_token_id": 0,
}
"""Of Phi-3: contexts longer than the boundary have other rotary frequencies."""


def full() -> PreTrainedModel:
    """All layers attend to all tokens."""
    return LlamaForCausalLM(LlamaConfig(**SHAPE, num_hidden_layers=3))


def one_layer() -> PreTrainedModel:
    """The least of them."""
    return LlamaForCausalLM(LlamaConfig(**SHAPE, num_hidden_layers=1))


def sliding() -> PreTrainedModel:
    """Layers alternate between a window of 8 tokens and all of them."""
    kinds = ["sliding_attention", "full_attention"] * 2
    config = Gemma3TextConfig(
        **SHAPE, head_dim=8, num_hidden_layers=4, sliding_window=WINDOW, layer_types=kinds
    )
    return Gemma3ForCausalLM(config)


def capped() -> PreTrainedModel:
    """As `sliding`, with soft caps on the logits of attention and on the last ones."""
    return Gemma2ForCausalLM(Gemma2Config(**SHAPE, **CAPPED, num_hidden_layers=4))


def experts() -> PreTrainedModel:
    """Each token chooses two of four experts."""
    config = MixtralConfig(**SHAPE, num_hidden_layers=3, num_local_experts=4, sliding_window=None)
    return MixtralForCausalLM(config)


def long_rope() -> PreTrainedModel:
    """Contexts of more than 24 tokens have other rotary frequencies than shorter ones."""
    return Phi3ForCausalLM(Phi3Config(**SHAPE, **LONG_ROPE, num_hidden_layers=3))


KINDS: tuple[Callable[[], PreTrainedModel], ...] = (full, sliding, capped, experts, long_rope)


def network(kind: Callable[[], PreTrainedModel], seed: int = 1) -> PreTrainedModel:
    """One of that kind, in float32."""
    torch.manual_seed(seed)
    return kind().eval()


def contexts(
    network: PreTrainedModel,
    tokens: int = 4096,
    *,
    deterministic: bool = False,
    compiled: bool = False,
) -> Contexts:
    """Contexts of a copy of the network, with room for so many tokens."""
    limits = CacheLimits(Budget.parse("1GB"), 1, tokens)
    return contexts_of(copy.deepcopy(network), limits, Asked(deterministic, compiled))


@torch.inference_mode()
def fresh_logits(network: PreTrainedModel, ids: list[int], rows: int) -> torch.Tensor:
    """After each of the last `rows` tokens, by a run of the network over all of them."""
    output = network(input_ids=torch.tensor([ids]), use_cache=False)
    return torch.as_tensor(output.logits[0, -rows:].float())
