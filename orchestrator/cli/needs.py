"""What a pair needs of this machine, and whether it is there. Knows the model store, no service."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.services import Pair
from uag_common.errors import UagError
from uag_common.models import catalogue
from uag_common.models.catalogue import CatalogueModel
from uag_common.models.errors import NoSpaceError
from uag_common.models.memory import DTYPE_BYTES, Dtype, available_bytes, estimate
from uag_common.models.packages import SPARE_BYTES
from uag_common.models.store import ModelStore

# Measured: an orchestrator and this process, each with the vocabularies of the default pair.
BESIDES_MODELS_BYTES = 1_600_000_000


class NoMemoryError(UagError):
    """The machine has less memory to give than the pair takes."""

    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes; what is not known before it is fetched (a hub id) counts 0 and is in `unknown`."""

    download: int
    disk: int
    memory: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supply:
    """Bytes that this machine has to give, and where the models are kept."""

    disk: int
    memory: int
    cache: Path

    @classmethod
    def measure(cls, cache: Path) -> Supply:
        """`cache` need not exist yet."""
        present = next(folder for folder in (cache, *cache.parents) if folder.exists())
        return cls(shutil.disk_usage(present).free, available_bytes(), cache)


def needs_of(pair: Pair, store: ModelStore) -> Needs:
    """What running the pair takes, fetching included. Raises CorruptModelError or NoWeightsError
    for a folder that cannot be loaded."""
    missing = [
        model
        for model in catalogue.MODELS
        if model.name in (pair.draft, pair.target) and not store.is_stored(model.name)
    ]
    sizes = {name: _resident(name, pair.dtype) for name in (pair.draft, pair.target)}
    running = BESIDES_MODELS_BYTES + sum(sizes[name] or 0 for name in (pair.draft, pair.target))
    converting = max((model.conversion_memory_bytes for model in missing), default=0)
    return Needs(
        download=sum(model.download_bytes for model in missing),
        disk=_disk(missing),
        memory=max(running, converting),
        unknown=tuple(name for name, size in sizes.items() if size is None),
    )


def check(needs: Needs, supply: Supply) -> None:
    """Raises NoSpaceError or NoMemoryError, each with the remedy."""
    if needs.disk > supply.disk:
        raise NoSpaceError(
            f"the models need {gigabytes(needs.disk)} of disk in {supply.cache}, "
            f"{gigabytes(supply.disk)} are free: free some, or set UAG_CACHE to another disk"
        )
    if needs.memory > supply.memory:
        raise NoMemoryError(
            f"the pair needs {gigabytes(needs.memory)} of memory, {gigabytes(supply.memory)} are "
            "free: end something else, try --dtype bfloat16, or choose smaller models with "
            "--draft and --target"
        )


def gigabytes(size: int) -> str:
    """A size for people; zero is said as such."""
    return "0 GB" if not size else f"{max(size, 50_000_000) / 1e9:.1f} GB"


def _disk(missing: Sequence[CatalogueModel]) -> int:
    """At its fullest: they come one after another, each with its package and its GGUF file."""
    kept = fullest = 0
    for model in missing:
        passing = model.download_bytes + model.gguf_bytes + SPARE_BYTES
        kept += model.converted_bytes
        fullest = max(fullest, kept + passing)
    return fullest


def _resident(name: str, dtype: str) -> int | None:
    """Bytes in memory; None for what is neither packaged nor a folder here."""
    known: Dtype = next((item for item in DTYPE_BYTES if item == dtype), "float32")
    if name in catalogue.names():
        return catalogue.find(name).resident_bytes(known)
    folder = Path(name).expanduser()
    return estimate(folder, known).resident_bytes() if folder.is_dir() else None
