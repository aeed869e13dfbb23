"""`uag models list`, `fetch` and `where` on an empty cache, without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import uag


@pytest.fixture
def empty(tmp_path: Path) -> dict[str, str]:
    return {"UAG_CACHE": str(tmp_path), "UAG_OFFLINE": "1"}


def test_list(empty: dict[str, str]) -> None:
    done = uag("models", "list", changes=empty)
    assert done.returncode == 0
    header, *rows = [line.split() for line in done.stdout.splitlines()]
    assert header[:3] == ["NAME", "HERE", "DOWNLOAD"]
    assert [row[:2] for row in rows] == [["smollm2-135m-instruct", "no"], ["gemma-3-270m", "no"]]
    assert "gemma-3-270m: " in done.stderr


def test_where_of_what_is_not_here_names_the_remedy(empty: dict[str, str]) -> None:
    done = uag("models", "where", "gemma-3-270m", changes=empty)
    assert (done.returncode, done.stdout) == (1, "")
    assert "uag models fetch gemma-3-270m" in done.stderr


def test_an_unknown_name_lists_the_known_ones(empty: dict[str, str]) -> None:
    done = uag("models", "where", "gpt-5", changes=empty)
    assert done.returncode == 1
    assert "smollm2-135m-instruct" in done.stderr


def test_fetch_offline_cannot(empty: dict[str, str]) -> None:
    done = uag("models", "fetch", "gemma-3-270m", changes=empty)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("uag models fetch: gemma-3-270m is not in")
    assert "\x1b" not in done.stderr


def test_fetch_of_a_folder_prints_it(tiny_model: Path) -> None:
    done = uag("models", "fetch", str(tiny_model))
    assert (done.returncode, done.stdout) == (0, f"{tiny_model}\n")
