"""Headers of safetensors files, whole and broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models.tiny_weights import Header, entry, write, write_model
from uag_common.models.errors import CorruptModelError, NoWeightsError
from uag_common.models.weights import read_tensors, weight_files


def test_tensors_are_listed_with_their_sizes(tmp_path: Path) -> None:
    tensors = read_tensors(write_model(tmp_path) / "model.safetensors")
    assert [(t.name, t.elements, t.stored_bytes, t.is_float) for t in tensors] == [
        ("a", 6, 24, True),
        ("b", 2, 16, False),
    ]


def test_metadata_is_no_tensor(tmp_path: Path) -> None:
    write(tmp_path / "x", {"__metadata__": {"format": "pt"}, "a": entry("U8", [3], 0, 3)}, 3)
    assert [tensor.name for tensor in read_tensors(tmp_path / "x")] == ["a"]


@pytest.mark.parametrize("kept_bytes", [0, 5, 8, 60, 150])
def test_a_cut_file_is_corrupt(tmp_path: Path, kept_bytes: int) -> None:
    file = write_model(tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept_bytes])
    with pytest.raises(CorruptModelError, match="is no whole safetensors file"):
        read_tensors(file)


@pytest.mark.parametrize(
    ("header", "data_bytes"),
    [
        ({"a": entry("F32", [2], 0, 8)}, 9),
        ({"a": entry("F32", [2], 0, 8), "b": entry("U8", [1], 9, 10)}, 10),
        ({"a": entry("F32", [3], 0, 8)}, 8),
        ({"a": entry("U8", [3], 3, 0)}, 0),
        ({"a": {"dtype": "F32"}}, 0),
        ({"a": {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]}}, 4),
    ],
)
def test_a_header_that_contradicts_itself(tmp_path: Path, header: Header, data_bytes: int) -> None:
    write(tmp_path / "x", header, data_bytes)
    with pytest.raises(CorruptModelError):
        read_tensors(tmp_path / "x")


@pytest.mark.parametrize("text", [b"[]", b"null", b"{{{{", b"\xff\xff"])
def test_a_header_that_is_no_header(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x").write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(CorruptModelError):
        read_tensors(tmp_path / "x")


def test_shards_come_from_the_index(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "2.safetensors", "b": "1.safetensors", "c": "1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in ("1.safetensors", "2.safetensors"):
        (tmp_path / name).touch()
    assert [file.name for file in weight_files(tmp_path)] == ["1.safetensors", "2.safetensors"]
    (tmp_path / "2.safetensors").unlink()
    with pytest.raises(CorruptModelError, match=r"names 2\.safetensors, which is missing"):
        weight_files(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": "../x"}}'])
def test_a_broken_index(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CorruptModelError):
        weight_files(tmp_path)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("pytorch_model.bin", "only safetensors are loaded"),
        ("adapter_model.safetensors", "it is an adapter"),
        ("x.Q4_1.gguf", r"give the file .*x\.Q4_1\.gguf itself"),
        ("README.md", "give a directory that `save_pretrained` wrote"),
    ],
)
def test_no_weights_names_the_remedy(tmp_path: Path, name: str, remedy: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(NoWeightsError, match=remedy):
        weight_files(tmp_path)
