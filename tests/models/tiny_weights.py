"""Writes small safetensors files by hand, right ones and wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

Header = dict[str, dict[str, object]]


def entry(dtype: str, shape: list[int], first: int, last: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def write(path: Path, header: Header, data_bytes: int) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(data_bytes))


def write_model(directory: Path, config: dict[str, object] | None = None) -> Path:
    """A directory that passes every check: 6 float32 numbers and 2 int64 ones."""
    directory.mkdir(parents=True, exist_ok=True)
    header = {"a": entry("F32", [2, 3], 0, 24), "b": entry("I64", [2], 24, 40)}
    write(directory / "model.safetensors", header, 40)
    (directory / "config.json").write_text(json.dumps(config or {}))
    (directory / "tokenizer.json").write_text("{}")
    return directory
