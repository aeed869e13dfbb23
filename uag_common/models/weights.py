"""Reads what safetensors files say of themselves. Knows that format, must not import torch.

Only headers are read, so a directory of any size is looked through in milliseconds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uag_common.models.errors import CorruptModelError, NoWeightsError

LENGTH_BYTES = 8
LARGEST_HEADER_BYTES = 100_000_000
SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
ITEM_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2,
    "U16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as stored; `dtype` in the format's own spelling, e.g. "BF16"."""

    name: str
    dtype: str
    elements: int
    stored_bytes: int

    @property
    def is_float(self) -> bool:
        """Whether loading in another dtype changes its size."""
        return self.dtype.startswith(("F", "BF"))


def weight_files(directory: Path) -> tuple[Path, ...]:
    """The safetensors files that transformers would load.

    Raises NoWeightsError, which says what lies there instead, and CorruptModelError when the index
    names a file that is missing.
    """
    if (directory / INDEX_FILE).is_file():
        return _shards(directory)
    if (directory / SINGLE_FILE).is_file():
        return (directory / SINGLE_FILE,)
    raise NoWeightsError(f"{directory} has no {SINGLE_FILE}: {_instead(directory)}")


def read_tensors(file: Path) -> tuple[Tensor, ...]:
    """The tensors of one file. Raises CorruptModelError if the header and the size disagree."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
            if not 2 <= length <= min(LARGEST_HEADER_BYTES, size - LENGTH_BYTES):
                raise ValueError("its header is cut off")
            header = json.loads(stream.read(length))
        return _tensors(header, size - LENGTH_BYTES - length)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptModelError(
            f"{file} is no whole safetensors file ({error}): fetch it again"
        ) from error


def _shards(directory: Path) -> tuple[Path, ...]:
    try:
        index = json.loads((directory / INDEX_FILE).read_text(encoding="utf-8"))
        names = sorted({str(name) for name in index["weight_map"].values()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptModelError(f"{directory / INDEX_FILE} cannot be read ({error})") from error
    for name in names:
        if Path(name).name != name or not (directory / name).is_file():
            raise CorruptModelError(
                f"{directory / INDEX_FILE} names {name}, which is missing: fetch it again"
            )
    return tuple(directory / name for name in names)


def _instead(directory: Path) -> str:
    names = sorted(path.name for path in directory.iterdir())
    if "adapter_model.safetensors" in names:
        return "it is an adapter, merge it into its base model and save that"
    if ggufs := [name for name in names if name.endswith(".gguf")]:
        return f"give the file {directory / ggufs[0]} itself"
    if any(name.endswith((".bin", ".pt", ".pth")) for name in names):
        return (
            "only safetensors are loaded (.bin and .pt files can run code), "
            "save it again with `save_pretrained`"
        )
    return "give a directory that `save_pretrained` wrote"


def _tensors(header: dict[str, Any], data_bytes: int) -> tuple[Tensor, ...]:
    header.pop("__metadata__", None)
    spans = sorted((*entry["data_offsets"], name) for name, entry in header.items())
    end = 0
    for first, last, name in spans:
        if first != end or last < first:
            raise ValueError(f"tensor {name} does not begin where the one before it ends")
        end = last
    if end != data_bytes:
        raise ValueError(f"{data_bytes} bytes of weights, its header promises {end}")
    return tuple(_tensor(name, entry) for name, entry in header.items())


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    first, last = entry["data_offsets"]
    tensor = Tensor(name, str(entry["dtype"]), math.prod(entry["shape"]), last - first)
    item = ITEM_BYTES.get(tensor.dtype)
    if item is not None and tensor.elements * item != tensor.stored_bytes:
        raise ValueError(f"tensor {name} has {tensor.stored_bytes} bytes for its shape")
    return tensor
