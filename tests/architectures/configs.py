"""Small configurations of the real classes, with what makes each of them hard left in.

Lengths at which something changes are so small that the contexts of the tests cross them, and caps
so low that they are felt. Knows no tokenizer.
"""

from __future__ import annotations

from typing import Any

from transformers import (
    DistilBertConfig,
    FalconConfig,
    FalconH1Config,
    Gemma2Config,
    GPTBigCodeConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Phi3Config,
    Qwen2Config,
)

HIDDEN = 32
HEADS = 4
KV_HEADS = 2
CONTEXT_LENGTH = 256
GEMMA_WINDOW = 14
MISTRAL_WINDOW = 12
LLAMA_ORIGINAL_CONTEXT = 32
PHI_ORIGINAL_CONTEXT = 24
PHI_SHORT_FACTOR = [1.0, 1.05, 1.1, 1.2]
PHI_LONG_FACTOR = [1.5, 4.0, 12.0, 32.0]

_COMMON: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "intermediate_size": 2 * HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": CONTEXT_LENGTH,
    "pad_token_id": None,
}


def llama_3_1(vocabulary: int) -> LlamaConfig:
    rope = {
        "rope_type": "llama3",
        "rope_theta": 500_000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": LLAMA_ORIGINAL_CONTEXT,
    }
    return LlamaConfig(**_COMMON, vocab_size=vocabulary, rope_parameters=rope)


def code_llama(vocabulary: int) -> LlamaConfig:
    settings = _COMMON | {"num_key_value_heads": HEADS}
    return LlamaConfig(**settings, vocab_size=vocabulary, rope_parameters=_rope(1_000_000.0))


def vicuna(vocabulary: int) -> LlamaConfig:
    return LlamaConfig(**_COMMON | {"num_key_value_heads": HEADS}, vocab_size=vocabulary)


def tiny_llama(vocabulary: int) -> LlamaConfig:
    return LlamaConfig(**_COMMON | {"num_key_value_heads": 1}, vocab_size=vocabulary)


def smollm2(vocabulary: int) -> LlamaConfig:
    return LlamaConfig(
        **_COMMON,
        vocab_size=vocabulary,
        rope_parameters=_rope(100_000.0),
        tie_word_embeddings=True,
    )


def mistral(vocabulary: int) -> MistralConfig:
    return MistralConfig(**_COMMON, vocab_size=vocabulary, sliding_window=MISTRAL_WINDOW)


def mixtral(vocabulary: int) -> MixtralConfig:
    return MixtralConfig(
        **_COMMON,
        vocab_size=vocabulary,
        num_local_experts=8,
        num_experts_per_tok=2,
        rope_parameters=_rope(1_000_000.0),
    )


def gemma_2(vocabulary: int) -> Gemma2Config:
    settings = _COMMON | {"num_hidden_layers": 4}
    return Gemma2Config(
        **settings,
        vocab_size=vocabulary,
        head_dim=HIDDEN // HEADS,
        query_pre_attn_scalar=1,
        sliding_window=GEMMA_WINDOW,
        attn_logit_softcapping=3.0,
        final_logit_softcapping=30.0,
    )


def phi_3(vocabulary: int) -> Phi3Config:
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10_000.0,
        "short_factor": PHI_SHORT_FACTOR,
        "long_factor": PHI_LONG_FACTOR,
        "original_max_position_embeddings": PHI_ORIGINAL_CONTEXT,
    }
    return Phi3Config(
        **_COMMON,
        vocab_size=vocabulary,
        original_max_position_embeddings=PHI_ORIGINAL_CONTEXT,
        rope_parameters=rope,
        # As the real one has it: layers that slide, over all of the context.
        sliding_window=CONTEXT_LENGTH,
    )


def qwen2(vocabulary: int) -> Qwen2Config:
    return Qwen2Config(
        **_COMMON,
        vocab_size=vocabulary,
        rope_parameters=_rope(1_000_000.0),
        tie_word_embeddings=True,
        use_sliding_window=False,
        sliding_window=CONTEXT_LENGTH,
    )


def gpt_bigcode(vocabulary: int) -> GPTBigCodeConfig:
    return GPTBigCodeConfig(
        vocab_size=vocabulary,
        n_positions=CONTEXT_LENGTH,
        n_embd=HIDDEN,
        n_layer=2,
        n_head=HEADS,
        n_inner=2 * HIDDEN,
        multi_query=True,
        bos_token_id=None,
        eos_token_id=None,
    )


def falcon_h1(vocabulary: int) -> FalconH1Config:
    return FalconH1Config(
        **_COMMON,
        vocab_size=vocabulary,
        mamba_d_ssm=2 * HIDDEN,
        mamba_n_heads=8,
        mamba_d_head=8,
        mamba_n_groups=1,
        mamba_d_state=8,
        mamba_chunk_size=8,
    )


def falcon(vocabulary: int) -> FalconConfig:
    return FalconConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        ffn_hidden_size=2 * HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        max_position_embeddings=CONTEXT_LENGTH,
        alibi=True,
        bias=True,
        multi_query=False,
        parallel_attn=False,
    )


def distilbert(vocabulary: int) -> DistilBertConfig:
    return DistilBertConfig(
        vocab_size=vocabulary,
        max_position_embeddings=CONTEXT_LENGTH,
        n_layers=2,
        n_heads=HEADS,
        dim=HIDDEN,
        hidden_dim=2 * HIDDEN,
    )


def _rope(theta: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta}
