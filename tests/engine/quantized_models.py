"""Model folders with quantised weights, in the formats that transformers loads by itself. Knows how
each is written, where its library does not write it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BitsAndBytesConfig,
    LlamaForCausalLM,
)

BLOCK = 128
FP8_LARGEST = 448
INT8_LARGEST = 127
SHAPE = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "initializer_range": 0.05,
}
INT8_SCHEME = {
    "format": "int-quantized",
    "targets": ["Linear"],
    "weights": {
        "num_bits": 8,
        "type": "int",
        "symmetric": True,
        "strategy": "channel",
        "dynamic": False,
    },
}

Weights = dict[str, torch.Tensor]


def plain(llama: Path, folder: Path) -> None:
    """A Llama whose matrices are large enough for blocks, with that one's tokenizer."""
    shutil.copytree(llama, folder)
    torch.manual_seed(0)
    LlamaForCausalLM(AutoConfig.from_pretrained(llama, **SHAPE)).save_pretrained(folder)


def fp8(whole: Path, folder: Path) -> None:
    """Eight bits of floating point in blocks, as DeepSeek and Qwen3 are published."""
    scheme = {"quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK], "fmt": "e4m3"}
    _write(whole, folder, _fp8, {**scheme, "activation_scheme": "dynamic"})


def compressed_tensors(whole: Path, folder: Path) -> None:
    """Eight bits by rows, as llm-compressor writes them."""
    scheme = {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": INT8_SCHEME},
    }
    _write(whole, folder, _int8, scheme)


def bitsandbytes_4bit(whole: Path, folder: Path) -> None:
    """NF4 (QLoRA, arXiv 2305.14314)."""
    kind = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    _save(whole, folder, kind)


def bitsandbytes_8bit(whole: Path, folder: Path) -> None:
    """LLM.int8() (arXiv 2208.07339)."""
    _save(whole, folder, BitsAndBytesConfig(load_in_8bit=True))


FORMATS: tuple[Callable[[Path, Path], None], ...] = (
    fp8,
    compressed_tensors,
    bitsandbytes_4bit,
    bitsandbytes_8bit,
)


def _save(whole: Path, folder: Path, kind: Any) -> None:
    shutil.copytree(whole, folder)
    (folder / "model.safetensors").unlink()
    network = AutoModelForCausalLM.from_pretrained(
        whole, dtype=torch.bfloat16, quantization_config=kind
    )
    network.save_pretrained(folder)


def _write(
    whole: Path,
    folder: Path,
    quantize: Callable[[torch.Tensor], Iterable[tuple[str, torch.Tensor]]],
    scheme: dict[str, Any],
) -> None:
    shutil.copytree(whole, folder)
    weights: Weights = {}
    for name, weight in load_file(whole / "model.safetensors").items():
        if weight.ndim == 2 and ".layers." in name:
            weights |= {f"{name}{suffix}": tensor for suffix, tensor in quantize(weight.float())}
        else:
            weights[name] = weight
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": scheme}))


def _fp8(weight: torch.Tensor) -> Iterable[tuple[str, torch.Tensor]]:
    rows, columns = weight.shape
    blocks = weight.view(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK)
    scale = blocks.abs().amax((1, 3)) / FP8_LARGEST
    scaled = (blocks / scale[:, None, :, None]).view(rows, columns)
    return ("", scaled.to(torch.float8_e4m3fn)), ("_scale_inv", scale)


def _int8(weight: torch.Tensor) -> Iterable[tuple[str, torch.Tensor]]:
    scale = weight.abs().amax(1, keepdim=True) / INT8_LARGEST
    return ("", (weight / scale).round().to(torch.int8)), ("_scale", scale)
