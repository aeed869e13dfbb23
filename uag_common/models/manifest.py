"""The list of files of a stored model, written beside them, by which it is seen to be whole.

Knows the format of that list, must not know how the files came about.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from uag_common.models.errors import CorruptModelError
from uag_common.models.hashing import sha256_of

FILE_NAME = "uag-manifest.json"
# Counts up whenever the conversion writes something else than before: older ones are redone.
CONVERSION = 1
WRITERS = ("gguf", "tokenizers", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it was when it was written."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`source`: where the weights came from; `versions`: NAME==VERSION of what converted them."""

    conversion: int
    source: str
    gguf_sha256: str
    versions: tuple[str, ...]
    files: tuple[StoredFile, ...]

    @property
    def is_current(self) -> bool:
        """Whether the present conversion would write the same files."""
        return self.conversion == CONVERSION


def describe(directory: Path, source: str, gguf_sha256: str) -> Manifest:
    """The manifest of what lies in `directory` now."""
    files = tuple(
        StoredFile(path.name, path.stat().st_size, sha256_of(path))
        for path in sorted(directory.iterdir())
    )
    versions = tuple(f"{name}=={metadata.version(name)}" for name in WRITERS)
    return Manifest(CONVERSION, source, gguf_sha256, versions, files)


def write(manifest: Manifest, directory: Path) -> None:
    """Put the manifest beside the files it lists."""
    text = json.dumps(asdict(manifest), indent=1) + "\n"
    (directory / FILE_NAME).write_text(text, encoding="utf-8")


def read(directory: Path) -> Manifest:
    """Raises CorruptModelError when it is missing or is no manifest."""
    try:
        raw = json.loads((directory / FILE_NAME).read_text(encoding="utf-8"))
        return _parse(raw)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptModelError(f"{directory / FILE_NAME} cannot be read ({error})") from error


def _parse(raw: dict[str, Any]) -> Manifest:
    return Manifest(
        conversion=int(raw["conversion"]),
        source=str(raw["source"]),
        gguf_sha256=str(raw["gguf_sha256"]),
        versions=tuple(str(version) for version in raw["versions"]),
        files=tuple(StoredFile(**file) for file in raw["files"]),
    )


def check_sizes(manifest: Manifest, directory: Path) -> None:
    """Quick. Raises CorruptModelError that names the first file that is missing or cut off."""
    for file in manifest.files:
        path = directory / file.name
        size = path.stat().st_size if path.is_file() else 0
        if size != file.size_bytes:
            raise CorruptModelError(f"{path} has {size} bytes, {file.size_bytes} were written")


def check_hashes(manifest: Manifest, directory: Path) -> None:
    """Reads every byte. Raises CorruptModelError that names the first file that differs."""
    check_sizes(manifest, directory)
    for file in manifest.files:
        if sha256_of(directory / file.name) != file.sha256:
            raise CorruptModelError(f"{directory / file.name} is not what was written")
