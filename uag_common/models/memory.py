"""How much memory a model takes, told from its files, and how much this machine has to give.

Knows headers, config.json and the kernel's counters; must not import torch. All sizes are bytes.
The figures are for main memory; what an accelerator has left only its driver knows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from uag_common.models.errors import CorruptModelError
from uag_common.models.weights import Tensor, read_tensors, weight_files

Dtype = Literal["float32", "bfloat16", "float16"]
DTYPE_BYTES: dict[Dtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
PREPACKED: tuple[Dtype, ...] = ("float32", "bfloat16")
"""An output layer that shares the embedding's weights has them in another order, so twice."""
# Both measured with torch 2.13 on a CPU; the whole estimate was within a tenth for two models.
# A process that has imported torch and transformers and has run some forward passes.
RUNTIME_BYTES = 400_000_000
# A loaded tokenizer, for each byte of tokenizer.json.
TOKENIZER_FACTOR = 11


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What a process that serves the model holds. `kv_token_bytes`: for each token of context."""

    weight_bytes: int
    tokenizer_bytes: int
    kv_token_bytes: int

    def resident_bytes(self, context_tokens: int = 0) -> int:
        """All of it, runtime included, with so many tokens in the KV cache."""
        kept = self.weight_bytes + self.tokenizer_bytes + self.kv_token_bytes * context_tokens
        return kept + RUNTIME_BYTES


def estimate(directory: Path, dtype: Dtype) -> MemoryEstimate:
    """What the model of `directory` takes when loaded in `dtype`.

    Raises NoWeightsError and CorruptModelError.
    """
    tensors = [tensor for file in weight_files(directory) for tensor in read_tensors(file)]
    item = DTYPE_BYTES[dtype]
    weights = sum(
        tensor.elements * item if tensor.is_float else tensor.stored_bytes for tensor in tensors
    )
    tokenizer = directory / "tokenizer.json"
    tokenizer_bytes = tokenizer.stat().st_size if tokenizer.is_file() else 0
    shape = _Shape.read(directory)
    if dtype in PREPACKED:
        weights += shape.shared_output(tensors) * item
    return MemoryEstimate(weights, tokenizer_bytes * TOKENIZER_FACTOR, shape.kv * item)


def available_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """What a new process could take now, within the limit of its cgroup.

    Where the kernel does not tell (macOS), the size of the machine's memory.
    """
    limits = [
        _left(limit, used, stat)
        for limit, used, stat in _limits(proc, cgroup)
        if limit.is_file() and limit.read_text().strip() != "max"
    ]
    return max(0, min([_machine_bytes(proc), *limits]))


@dataclass(frozen=True, slots=True)
class _Shape:
    """Numbers of a network: kept for each token (sliding layers count in full, no attention counts
    0), and in the embedding of the input."""

    kv: int
    embedding: int

    @classmethod
    def read(cls, directory: Path) -> _Shape:
        try:
            config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
            text = config.get("text_config") or config
            layers = _first(text, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
            heads = _first(text, "num_attention_heads", "n_head", "n_heads", "num_heads")
            width = _first(text, "hidden_size", "n_embd", "d_model", "dim")
            kv_heads = 1 if text.get("multi_query") else text.get("num_key_value_heads") or heads
            head_width = text.get("head_dim") or (width // heads if heads else 0)
            kv = 2 * int(layers) * int(kv_heads) * int(head_width)
            return cls(kv, _first(text, "vocab_size") * width)
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CorruptModelError(
                f"{directory / 'config.json'} cannot be read ({error}): fetch it again"
            ) from error

    def shared_output(self, tensors: Sequence[Tensor]) -> int:
        """Numbers of the output layer, where the files have it only as the embedding."""
        alike = sum(tensor.elements == self.embedding for tensor in tensors)
        return self.embedding if alike == 1 else 0


def _first(config: dict[str, Any], *names: str) -> int:
    return next((int(config[name]) for name in names if config.get(name) is not None), 0)


def _machine_bytes(proc: Path) -> int:
    try:
        for line in (proc / "meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except FileNotFoundError:
        pass  # Not Linux.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _limits(proc: Path, root: Path) -> Iterator[tuple[Path, Path, Path]]:
    """The files of limit, use and statistics of each control group around this process."""
    v1 = root / "memory"
    yield v1 / "memory.limit_in_bytes", v1 / "memory.usage_in_bytes", v1 / "memory.stat"
    group = root / _own_group(proc)
    while group.is_relative_to(root):
        yield group / "memory.max", group / "memory.current", group / "memory.stat"
        group = group.parent


def _own_group(proc: Path) -> str:
    """The path below the root of version 2, "" for the root itself or where there is none."""
    try:
        lines = (proc / "self/cgroup").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ""
    return next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "")


def _left(limit: Path, used: Path, stat: Path) -> int:
    return int(limit.read_text()) - int(used.read_text()) + _reclaimable(stat)


def _reclaimable(stat: Path) -> int:
    """File pages that the kernel drops when memory gets tight; they count as used until then."""
    names = ("inactive_file", "total_inactive_file")
    lines = (line.split() for line in stat.read_text(encoding="ascii").splitlines())
    return max((int(value) for name, value in lines if name in names), default=0)
