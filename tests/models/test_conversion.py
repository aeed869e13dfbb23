"""A conversion is all or nothing, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from uag_common.models import conversion, manifest
from uag_common.models.errors import ConversionError
from uag_common.models.lock import exclusive
from uag_common.models.reports import SILENT

KILLED_PARENT = """
import signal
import sys
from pathlib import Path
from uag_common.models import conversion
from uag_common.models.lock import exclusive
from uag_common.models.reports import SILENT
# Whoever runs the tests may have it ignored, as a shell does for its background jobs.
signal.signal(signal.SIGINT, signal.default_int_handler)
conversion.CONVERTER = "tests.models.fake_converter"
root = Path(sys.argv[1])
with exclusive(root / "lock", lambda: None) as lock:
    conversion.convert(root / "x.gguf", "0", "here", root / "model", lock, SILENT)
"""


@pytest.fixture(autouse=True)
def _fake_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "CONVERTER", "tests.models.fake_converter")


def convert(root: Path, gguf: bytes) -> None:
    (root / "x.gguf").write_bytes(gguf)
    with exclusive(root / "lock", lambda: None) as lock:
        conversion.convert(root / "x.gguf", "0", "here", root / "model", lock, SILENT)


def names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_the_result_has_a_manifest_that_fits(tmp_path: Path) -> None:
    convert(tmp_path, b"fine")
    written = manifest.read(tmp_path / "model")
    manifest.check_hashes(written, tmp_path / "model")
    assert [file.name for file in written.files] == ["config.json", "model.safetensors"]
    assert names(tmp_path) == {"lock", "model", "x.gguf"}


def test_a_failed_one_tells_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"x\.gguf cannot be converted: .*no good"):
        convert(tmp_path, b"fail")
    assert names(tmp_path) == {"lock", "x.gguf"}


def test_what_was_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "leftover").touch()
    convert(tmp_path, b"fine")
    assert "leftover" not in names(tmp_path / "model")


def test_a_killed_process_leaves_no_half_model(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"hang")
    command = [sys.executable, "-c", KILLED_PARENT, str(tmp_path)]
    with subprocess.Popen(command) as parent:
        child = _wait_for_child(parent.pid, tmp_path / ".model.partial")
        parent.kill()
    assert not (tmp_path / "model").exists()
    waited: list[bool] = []

    def end_child() -> None:
        # The orphan still writes, so the lock must still be held.
        waited.append(True)
        subprocess.run(["kill", "-KILL", str(child)], check=True)  # noqa: S607

    with exclusive(tmp_path / "lock", end_child):
        pass
    assert waited == [True]
    convert(tmp_path, b"fine")
    assert names(tmp_path) == {"lock", "model", "x.gguf"}


def test_an_interrupt_ends_the_process_too(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"hang")
    command = [sys.executable, "-c", KILLED_PARENT, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        child = _wait_for_child(parent.pid, tmp_path / ".model.partial")
        parent.send_signal(signal.SIGINT)
        parent.wait(10)
    assert not Path(f"/proc/{child}").exists()
    assert names(tmp_path) == {"lock", "x.gguf"}


def _wait_for_child(parent: int, partial: Path) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if children and (partial / "model.safetensors").exists():
            return int(children[0])
        time.sleep(0.02)
    raise AssertionError("the conversion did not start")
