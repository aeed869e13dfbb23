"""What a pair needs, and what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.needs import (
    BESIDES_MODELS_BYTES,
    Needs,
    NoMemoryError,
    Supply,
    check,
    gigabytes,
    needs_of,
)
from orchestrator.cli.services import DEFAULT_PAIR, Pair
from uag_common.models.catalogue import GEMMA3, SMOLLM2
from uag_common.models.errors import NoSpaceError
from uag_common.models.settings import StoreSettings
from uag_common.models.store import ModelStore

GB = 1_000_000_000


def empty_store(tmp_path: Path) -> ModelStore:
    return ModelStore(StoreSettings(tmp_path / "cache", offline=True))


def test_the_default_pair_on_an_empty_machine(tmp_path: Path) -> None:
    needed = needs_of(DEFAULT_PAIR, empty_store(tmp_path))
    assert needed.download == SMOLLM2.download_bytes + GEMMA3.download_bytes
    both = SMOLLM2.converted_bytes + GEMMA3.converted_bytes
    assert both + GEMMA3.gguf_bytes < needed.disk < both + 3 * GEMMA3.gguf_bytes
    resident = SMOLLM2.resident_float32_bytes + GEMMA3.resident_float32_bytes
    assert needed.memory == max(resident + BESIDES_MODELS_BYTES, GEMMA3.conversion_memory_bytes)
    assert needed.unknown == ()


def test_a_folder_is_measured_and_a_hub_id_is_not(tmp_path: Path, tiny_model: Path) -> None:
    pair = Pair(draft="org/name", target=str(tiny_model), dtype="bfloat16")
    needed = needs_of(pair, empty_store(tmp_path))
    assert (needed.download, needed.disk) == (0, 0)
    assert needed.unknown == ("org/name",)
    assert needed.memory > BESIDES_MODELS_BYTES


def test_bfloat16_needs_less(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    full, half = (
        needs_of(Pair(SMOLLM2.name, SMOLLM2.name, dtype), store).memory
        for dtype in ("float32", "bfloat16")
    )
    assert half < full


def test_enough_is_enough() -> None:
    check(Needs(0, 2 * GB, 3 * GB, ()), Supply(2 * GB, 3 * GB, Path("/cache")))


def test_too_little_disk_names_the_remedy() -> None:
    with pytest.raises(NoSpaceError, match=r"need 2\.0 GB of disk in /cache, 1\.0 GB.*UAG_CACHE"):
        check(Needs(0, 2 * GB, 0, ()), Supply(GB, GB, Path("/cache")))


def test_too_little_memory_names_the_remedy() -> None:
    with pytest.raises(NoMemoryError, match=r"needs 3\.0 GB of memory, 1\.0 GB.*--dtype bfloat16"):
        check(Needs(0, 0, 3 * GB, ()), Supply(GB, GB, Path("/cache")))


def test_the_disk_of_a_cache_that_is_not_there_yet(tmp_path: Path) -> None:
    assert Supply.measure(tmp_path / "not" / "yet").disk > 0


def test_sizes_for_people() -> None:
    assert [gigabytes(size) for size in (0, 1, 1_250_000_000)] == ["0 GB", "0.1 GB", "1.2 GB"]
