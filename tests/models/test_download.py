"""Resume, retry and refusal, over real sockets."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from tests.models.file_server import Script, serving
from uag_common.models.download import Patience, Remote, download
from uag_common.models.errors import DownloadError
from uag_common.models.reports import SILENT

CONTENT = random.Random(5).randbytes(1_000_000)
QUICK = Patience(attempts=3, first_pause_seconds=0.01)


def remote(url: str, content: bytes = CONTENT) -> Remote:
    return Remote(url, hashlib.sha256(content).hexdigest(), len(content))


def fetch(script: Script, destination: Path, content: bytes = CONTENT) -> None:
    with serving(script) as url:
        download(remote(url, content), destination, SILENT, patience=QUICK)


def test_a_whole_file_comes_in_one_request(tmp_path: Path) -> None:
    script = Script(CONTENT)
    fetch(script, tmp_path / "a.whl")
    assert (tmp_path / "a.whl").read_bytes() == CONTENT
    assert script.ranges == [None]
    assert [path.name for path in tmp_path.iterdir()] == ["a.whl"]


def test_a_cut_connection_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    script = Script(CONTENT, cuts=[300_000, 200_000])
    fetch(script, tmp_path / "a.whl")
    assert (tmp_path / "a.whl").read_bytes() == CONTENT
    assert script.ranges == [None, "bytes=300000-", "bytes=500000-"]


def test_what_an_earlier_run_left_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.whl.part").write_bytes(CONTENT[:999_999])
    script = Script(CONTENT)
    fetch(script, tmp_path / "a.whl")
    assert (tmp_path / "a.whl").read_bytes() == CONTENT
    assert script.ranges == ["bytes=999999-"]


def test_a_complete_part_needs_no_request(tmp_path: Path) -> None:
    (tmp_path / "a.whl.part").write_bytes(CONTENT)
    script = Script(CONTENT)
    fetch(script, tmp_path / "a.whl")
    assert script.ranges == []


def test_a_server_that_ignores_the_range_starts_anew(tmp_path: Path) -> None:
    script = Script(CONTENT, cuts=[300_000], honours_range=False)
    fetch(script, tmp_path / "a.whl")
    assert (tmp_path / "a.whl").read_bytes() == CONTENT


@pytest.mark.parametrize("length", [5, 1_000_000, 1_500_000])
def test_a_part_of_another_file_costs_one_clean_try(tmp_path: Path, length: int) -> None:
    (tmp_path / "a.whl.part").write_bytes(b"x" * length)
    fetch(Script(CONTENT), tmp_path / "a.whl")
    assert (tmp_path / "a.whl").read_bytes() == CONTENT


def test_the_wrong_file_is_refused_and_not_kept(tmp_path: Path) -> None:
    script = Script(CONTENT[::-1])
    with pytest.raises(DownloadError, match="not the file that was asked for"):
        fetch(script, tmp_path / "a.whl")
    assert list(tmp_path.iterdir()) == []


def test_a_dead_line_is_given_up_and_what_came_is_kept(tmp_path: Path) -> None:
    script = Script(CONTENT, cuts=[400_000, 0, 0, 0, 0])
    with pytest.raises(DownloadError, match=r"after 3 tries.*what has arrived is kept"):
        fetch(script, tmp_path / "a.whl")
    assert (tmp_path / "a.whl.part").read_bytes() == CONTENT[:400_000]
    assert len(script.ranges) == 4


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with serving(Script(CONTENT)) as url:
        pass
    with pytest.raises(DownloadError, match="Connection refused, after 3 tries"):
        download(remote(url), tmp_path / "a.whl", SILENT, patience=QUICK)


@pytest.mark.parametrize(("status", "tries"), [(404, 1), (401, 1), (403, 1), (410, 1)])
def test_a_refusal_is_not_repeated(tmp_path: Path, status: int, tries: int) -> None:
    script = Script(CONTENT, statuses=[status] * 9)
    with pytest.raises(DownloadError, match=str(status)):
        fetch(script, tmp_path / "a.whl")
    assert len(script.ranges) == tries


@pytest.mark.parametrize("status", [416, 429, 500, 503])
def test_a_passing_failure_is_retried(tmp_path: Path, status: int) -> None:
    (tmp_path / "a.whl.part").write_bytes(CONTENT[:100])
    fetch(Script(CONTENT, statuses=[status]), tmp_path / "a.whl")
    assert (tmp_path / "a.whl").read_bytes() == CONTENT


def test_an_index_may_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "source.whl").write_bytes(CONTENT)
    download(remote((tmp_path / "source.whl").as_uri()), tmp_path / "a.whl", SILENT, patience=QUICK)
    assert (tmp_path / "a.whl").read_bytes() == CONTENT


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no http, https or file address"):
        download(remote("ftp://host/file"), tmp_path / "a.whl", SILENT, patience=QUICK)
