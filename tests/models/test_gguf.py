"""The real conversion of a small GGUF file: weights, pre-tokenizer, EOS ids, file layout."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from uag_common.models.errors import ConversionError
from uag_common.models.settings import StoreSettings
from uag_common.models.store import ModelStore

WIDTH, HIDDEN, LAYERS = 32, 64, 2
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# "0" to "9", and pairs of them: a tokenizer that keeps numbers whole would use the pairs.
TOKENS = [*CONTROLS, *sorted(ByteLevel.alphabet()), "20", "24"]


def write_gguf(path: Path, pre_tokenizer: str) -> dict[str, np.ndarray]:
    """A random Llama; returns its tensors by their GGUF names."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre_tokenizer)
    writer.add_token_list(TOKENS)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if token in CONTROLS else normal for token in TOKENS])
    writer.add_token_merges(["2 0", "2 4"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    tensors = _tensors()
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def _tensors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    shapes = {"token_embd.weight": (len(TOKENS), WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (WIDTH,),
            f"blk.{layer}.ffn_norm.weight": (WIDTH,),
            f"blk.{layer}.attn_q.weight": (WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": (WIDTH // 2, WIDTH),
            f"blk.{layer}.attn_v.weight": (WIDTH // 2, WIDTH),
            f"blk.{layer}.attn_output.weight": (WIDTH, WIDTH),
            f"blk.{layer}.ffn_gate.weight": (HIDDEN, WIDTH),
            f"blk.{layer}.ffn_up.weight": (HIDDEN, WIDTH),
            f"blk.{layer}.ffn_down.weight": (WIDTH, HIDDEN),
        }
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_a_small_llama(tmp_path: Path) -> None:
    tensors = write_gguf(tmp_path / "small.gguf", "smollm")
    store = ModelStore(StoreSettings(tmp_path / "cache", offline=True))
    directory = store.convert_file(tmp_path / "small.gguf")

    weights = load_file(directory / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {np.dtype("float32")}
    assert np.array_equal(weights["model.embed_tokens.weight"], tensors["token_embd.weight"])
    for layer in range(LAYERS):
        down = weights[f"model.layers.{layer}.mlp.down_proj.weight"]
        assert np.array_equal(down, tensors[f"blk.{layer}.ffn_down.weight"])

    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    assert tokenizer.encode("2024").tokens == ["2", "0", "2", "4"]
    assert [tokenizer.get_added_tokens_decoder()[i].special for i in range(3)] == [True] * 3

    config = json.loads((directory / "config.json").read_text())
    assert "quantization_config" not in config
    assert config["tie_word_embeddings"] is True
    generation = json.loads((directory / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [0, 2]
    tokenizer_config = json.loads((directory / "tokenizer_config.json").read_text())
    assert tokenizer_config["eos_token"] == CONTROLS[0]
    assert tokenizer_config["model_max_length"] == 128
    assert (directory / "chat_template.jinja").read_text() == "{{ messages[0]['content'] }}"


def test_a_file_that_is_no_gguf(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF\x03\x00\x00\x00 and then nothing of use" * 3)
    store = ModelStore(StoreSettings(tmp_path / "cache", offline=True))
    with pytest.raises(ConversionError, match=r"bad\.gguf cannot be converted"):
        store.convert_file(tmp_path / "bad.gguf")
    assert list((tmp_path / "cache" / "models").iterdir()) == []
