"""Small models with tokenizers of their own, saved as a user's model folder would be.

Real classes of transformers with random weights, then taught a few sentences by heart: two of them
agree where these go on and differ elsewhere, so drafts are accepted and rejected.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

Kind = Literal["llama", "gpt2"]

CONTEXT_LENGTH = 256
STEPS = 160
LEARNING_RATE = 3e-3
EOS = "<eos>"
BOS = "<bos>"

TEXT = (
    "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all.",
    "def add(left: int, right: int) -> int:\n    return left + right\n",
    "It rained for 40 days; on day 41 the sun came out, and everybody went to the sea.",
    "Wörter mit Umlauten, des mots accentués, и немного кириллицы, 日本語もすこし。",
)


def miniature(folder: Path, kind: Kind, *, seed: int = 0) -> Path:
    """Makes a model of that kind in `folder` (created), with a chat template for "llama" only."""
    tokenizer = _BUILDERS[kind][0]()
    torch.manual_seed(seed)
    network = _BUILDERS[kind][1](tokenizer)
    _teach(network, tokenizer)
    network.generation_config.eos_token_id = tokenizer.eos_token_id
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _teach(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
    lessons = [
        torch.tensor([[*tokenizer(text).input_ids, tokenizer.eos_token_id]]) for text in TEXT
    ]
    network.train()
    for step in range(STEPS):
        lesson = lessons[step % len(lessons)]
        network(input_ids=lesson, labels=lesson).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    network.eval()


def _byte_level() -> PreTrainedTokenizerFast:
    """As GPT-2 and SmolLM2: byte-level BPE, no BOS, a chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=[EOS, "<turn>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=EOS)
    fast.chat_template = (
        "{% for message in messages %}<turn>{{ message.role }}\n{{ message.content }}<turn>\n"
        "{% endfor %}{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
    )
    return fast


def _sentencepiece() -> PreTrainedTokenizerFast:
    """As Llama 2 and Gemma: `▁` for spaces, bytes as a fallback, a BOS, no chat template."""
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))  # noqa: S106
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=620,
        special_tokens=["<unk>", BOS, EOS, *byte_pieces],
        show_progress=False,
        max_token_length=8,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    # The trainer puts the bytes into the vocabulary, but as control tokens, which they are not.
    spec = json.loads(tokenizer.to_str())
    spec["added_tokens"] = [
        token for token in spec["added_tokens"] if token["content"] not in byte_pieces
    ]
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(spec)),
        bos_token=BOS,
        eos_token=EOS,
        unk_token="<unk>",  # noqa: S106
    )


def _llama(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer) + 8,
            hidden_size=48,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=CONTEXT_LENGTH,
            initializer_range=0.05,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )


def _gpt2(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=CONTEXT_LENGTH,
            n_embd=48,
            n_layer=2,
            n_head=4,
            initializer_range=0.05,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=tokenizer.bos_token_id,
        )
    )


_BUILDERS: dict[
    Kind,
    tuple[
        Callable[[], PreTrainedTokenizerFast],
        Callable[[PreTrainedTokenizerFast], PreTrainedModel],
    ],
] = {"llama": (_byte_level, _llama), "gpt2": (_sentencepiece, _gpt2)}
