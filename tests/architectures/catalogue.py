"""The architectures that must work, as miniatures: which class, which tokenizer, what is special.

Values alone; `folders` makes models of them.
"""

from __future__ import annotations

from transformers import (
    DistilBertForMaskedLM,
    FalconForCausalLM,
    FalconH1ForCausalLM,
    Gemma2ForCausalLM,
    GPTBigCodeForCausalLM,
    LlamaForCausalLM,
    MistralForCausalLM,
    MixtralForCausalLM,
    Phi3ForCausalLM,
    Qwen2ForCausalLM,
)

from tests.architectures import configs, templates
from tests.architectures.architecture import Architecture, Boundary, Roles

LLAMA_3_1 = Architecture(
    name="llama-3.1",
    stands_for="meta-llama/Llama-3.1-70B",
    tokenizer="llama31",
    network=LlamaForCausalLM,
    config=configs.llama_3_1,
    vocabulary_size=128256,
    roles=Roles(eos_ids=(128001,), bos_id=128000),
    special="rope of `llama3`: low frequencies are stretched; grouped keys and values",
)
CODE_LLAMA = Architecture(
    name="codellama",
    stands_for="codellama/CodeLlama-13b-Instruct-hf",
    tokenizer="codellama",
    network=LlamaForCausalLM,
    config=configs.code_llama,
    vocabulary_size=32016,
    roles=Roles(eos_ids=(2,), bos_id=1),
    special="a rope base of 1,000,000; keys and values for each head",
    chat_template=templates.LLAMA_2,
)
VICUNA = Architecture(
    name="vicuna",
    stands_for="double7/vicuna-68m",
    tokenizer="llama2",
    network=LlamaForCausalLM,
    config=configs.vicuna,
    vocabulary_size=32000,
    roles=Roles(eos_ids=(2,), bos_id=1),
    special="nothing",
)
TINY_LLAMA = Architecture(
    name="tinyllama",
    stands_for="TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    tokenizer="llama2",
    network=LlamaForCausalLM,
    config=configs.tiny_llama,
    vocabulary_size=32000,
    roles=Roles(eos_ids=(2,), bos_id=1),
    special="keys and values shared by many heads",
    chat_template=templates.ZEPHYR,
)
SMOLLM2 = Architecture(
    name="smollm2",
    stands_for="HuggingFaceTB/SmolLM2-135M-Instruct",
    tokenizer="smollm2",
    network=LlamaForCausalLM,
    config=configs.smollm2,
    vocabulary_size=49152,
    roles=Roles(eos_ids=(2,), bos_id=1, pad_id=2),
    special="one matrix for both embeddings",
    chat_template=templates.chatml(
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    ),
)
MISTRAL = Architecture(
    name="mistral",
    stands_for="mistralai/Mistral-7B-v0.1",
    # Its own has 768 control tokens less.
    tokenizer="mixtral",
    network=MistralForCausalLM,
    config=configs.mistral,
    vocabulary_size=32768,
    roles=Roles(eos_ids=(2,), bos_id=1),
    special="a sliding window in all layers",
    boundary=Boundary(configs.MISTRAL_WINDOW),
)
MIXTRAL = Architecture(
    name="mixtral",
    stands_for="mistralai/Mixtral-8x22B-Instruct-v0.1",
    tokenizer="mixtral",
    network=MixtralForCausalLM,
    config=configs.mixtral,
    vocabulary_size=32768,
    roles=Roles(eos_ids=(2,), bos_id=1),
    special="experts: two of eight for each token",
    chat_template=templates.MIXTRAL,
)
GEMMA_2 = Architecture(
    name="gemma-2",
    stands_for="google/gemma-2-9b",
    tokenizer="gemma2",
    network=Gemma2ForCausalLM,
    config=configs.gemma_2,
    vocabulary_size=256000,
    roles=Roles(eos_ids=(1,), bos_id=2, pad_id=0),
    special="a sliding window in every other layer; scores of attention and logits are capped",
    boundary=Boundary(configs.GEMMA_WINDOW),
)
PHI_3 = Architecture(
    name="phi-3",
    stands_for="microsoft/Phi-3-medium-128k-instruct",
    tokenizer="phi3",
    network=Phi3ForCausalLM,
    config=configs.phi_3,
    vocabulary_size=32064,
    roles=Roles(eos_ids=(32000, 32001, 32007), bos_id=1, pad_id=32000),
    special="`longrope`: other frequencies for all positions of a long context; a window over all "
    "of it; fused projections; 53 ids without a token",
    chat_template=templates.PHI_3,
    boundary=Boundary(configs.PHI_ORIGINAL_CONTEXT, of_all=True),
)
QWEN2 = Architecture(
    name="qwen2",
    stands_for="Qwen/Qwen2-0.5B-Instruct",
    tokenizer="qwen2",
    network=Qwen2ForCausalLM,
    config=configs.qwen2,
    vocabulary_size=151936,
    roles=Roles(eos_ids=(151645, 151643), pad_id=151643),
    special="biases of queries, keys and values; a window that is named but off; 290 ids without "
    "a token",
    chat_template=templates.chatml("You are a helpful assistant."),
)
GPT_BIGCODE = Architecture(
    name="gpt-bigcode",
    stands_for="bigcode/tiny_starcoder_py",
    tokenizer="starcoder",
    network=GPTBigCodeForCausalLM,
    config=configs.gpt_bigcode,
    vocabulary_size=49152,
    roles=Roles(eos_ids=(0,), bos_id=0),
    special="one head of keys and values for all (multi-query); learnt positions",
)
FALCON = Architecture(
    name="falcon",
    stands_for="tiiuae/falcon-rw-1b",
    # Its own is not among the shared ones.
    tokenizer="starcoder",
    network=FalconForCausalLM,
    config=configs.falcon,
    vocabulary_size=49152,
    roles=Roles(eos_ids=(0,)),
    special="biases by distance (ALiBi) in an attention that no other can replace",
)
FALCON_H1 = Architecture(
    name="falcon-h1",
    stands_for="tiiuae/Falcon-H1-0.5B-Base",
    # Its own is not among the shared ones.
    tokenizer="smollm2",
    network=FalconH1ForCausalLM,
    config=configs.falcon_h1,
    vocabulary_size=49152,
    roles=Roles(eos_ids=(0,)),
    special="a recurrence beside the attention of each layer",
)
DISTILBERT = Architecture(
    name="distilbert",
    stands_for="distilbert/distilbert-base-uncased",
    tokenizer="distilbert",
    network=DistilBertForMaskedLM,
    config=configs.distilbert,
    vocabulary_size=30522,
    roles=Roles(eos_ids=(102,), pad_id=0),
    special="fills masks, sees both sides, has no cache; a vocabulary without case and spaces",
    masked=True,
)

ARCHITECTURES = (
    LLAMA_3_1,
    CODE_LLAMA,
    VICUNA,
    TINY_LLAMA,
    SMOLLM2,
    MISTRAL,
    MIXTRAL,
    GEMMA_2,
    PHI_3,
    QWEN2,
    GPT_BIGCODE,
    FALCON,
    FALCON_H1,
    DISTILBERT,
)
CAUSAL = tuple(architecture for architecture in ARCHITECTURES if not architecture.masked)
