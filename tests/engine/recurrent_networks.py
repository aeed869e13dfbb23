"""Small recurrent, hybrid and unusual networks with random weights, in float32."""

from __future__ import annotations

import torch
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    FalconH1Config,
    FalconH1ForCausalLM,
    JambaConfig,
    JambaForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
    RecurrentGemmaConfig,
    RecurrentGemmaForCausalLM,
    RwkvConfig,
    RwkvForCausalLM,
    StableLmConfig,
    StableLmForCausalLM,
)

VOCABULARY = 200
HIDDEN = 32
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "initializer_range": 0.2,
}
_ATTENTION = {
    **_SIZES,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
_LINEAR_THEN_FULL = ["linear_attention", "full_attention"]
_STATE_SPACE = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 1,
    "mamba_d_state": 8,
    "mamba_chunk_size": 8,
}


def stablelm() -> PreTrainedModel:
    """Attention to all tokens that cannot be replaced by one of our own."""
    return StableLmForCausalLM(StableLmConfig(**_ATTENTION))


def falcon() -> PreTrainedModel:
    """As `stablelm`, with one head of keys and biases by distance (ALiBi) in place of rotations."""
    return FalconForCausalLM(FalconConfig(**_SIZES, num_attention_heads=4, alibi=True))


def mamba() -> PreTrainedModel:
    """Recurrent; with a cache, wrong about more than one token at once."""
    return MambaForCausalLM(MambaConfig(**_SIZES, state_size=8))


def mamba2() -> PreTrainedModel:
    """Recurrent."""
    config = Mamba2Config(**_SIZES, state_size=8, num_heads=8, head_dim=8, n_groups=1, chunk_size=8)
    return Mamba2ForCausalLM(config)


def falcon_h1() -> PreTrainedModel:
    """Each layer has a recurrence and attention to all tokens."""
    return FalconH1ForCausalLM(FalconH1Config(**_ATTENTION, **_STATE_SPACE, mamba_d_ssm=64))


def lfm2() -> PreTrainedModel:
    """Layers of short convolutions and of attention."""
    return Lfm2ForCausalLM(
        Lfm2Config(**_ATTENTION, layer_types=["conv", "full_attention"], conv_L_cache=3)
    )


def jamba() -> PreTrainedModel:
    """Recurrent layers as in `mamba`, attention, and experts."""
    config = JambaConfig(
        **_ATTENTION,
        mamba_d_state=8,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        num_experts=2,
        use_mamba_kernels=False,
    )
    return JambaForCausalLM(config)


def qwen3_next() -> PreTrainedModel:
    """Layers of linear attention (gated delta rule) and of attention to all tokens; experts."""
    config = Qwen3NextConfig(
        **_ATTENTION,
        head_dim=8,
        layer_types=_LINEAR_THEN_FULL,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    )
    return Qwen3NextForCausalLM(config)


def rwkv() -> PreTrainedModel:
    """Recurrent, with states that are no cache of transformers."""
    return RwkvForCausalLM(RwkvConfig(**_SIZES, attention_hidden_size=HIDDEN))


def recurrent_gemma() -> PreTrainedModel:
    """Recurrent, with states on the module: those of the context that ran last."""
    settings = _ATTENTION | {"num_hidden_layers": 3}
    config = RecurrentGemmaConfig(**settings, head_dim=8, attention_window_size=8, lru_width=HIDDEN)
    return RecurrentGemmaForCausalLM(config)


@torch.inference_mode()
def last_logits(network: PreTrainedModel, ids: list[int], rows: int) -> torch.Tensor:
    """After each of the last `rows` tokens, by one run of the network over all, without a cache."""
    output = network(input_ids=torch.tensor([ids]), use_cache=False)
    return torch.as_tensor(output.logits[0, -rows:].float())
