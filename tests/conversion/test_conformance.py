"""The visible cases, and what the runner says of files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import main, problems
from tests.conversion.vocabularies import shared_directory

pytestmark = pytest.mark.usefixtures("real_tokenizers")

CASES = shared_directory() / "cases" / "conversion.jsonl"


def case(**changes: Any) -> dict[str, Any]:
    return {
        "id": "one",
        "direction": "encode",
        "target": "llama2",
        "draft": "llama2",
        "input": {"text_hex": "61"},
        "expected": {"ids": [29874], "widths": [1]},
        **changes,
    }


def write(path: Path, *lines: object) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_all_visible_cases_pass() -> None:
    lines = CASES.read_text(encoding="utf-8").strip().split("\n")
    assert len(lines) > 100
    assert [found for line in lines for found in problems(line)] == []


def test_the_last_line_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = json.dumps(case()), json.dumps(case(id="two", expected={"ids": [1]}))
    assert main([write(tmp_path / "cases", right, wrong)]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == ["two: ids: expected [1], came [29874]"]
    assert last == "1 passed, 1 failed"


def test_all_passed_is_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path / "cases", json.dumps(case()))]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "holds no case"),
        ("{", "no JSON"),
        ("[]", "no case"),
        ("{}", "no case"),
        (json.dumps(case(direction="sideways")), "unknown direction 'sideways'"),
        (json.dumps(case(target="nobody")), "nobody"),
        (json.dumps(case(input={})), "text_hex"),
        (json.dumps(case(input=[])), "must be objects"),
        (json.dumps(case(expected={})), "nothing is expected"),
        (json.dumps(case(direction=[])), "unknown direction '[]'"),
        (json.dumps(case(input={"text_hex": "xy"})), "cannot be used"),
    ],
)
def test_what_is_no_case_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    assert main([write(tmp_path / "cases", line)]) == 1
    message, last = capsys.readouterr().out.splitlines()
    assert complaint in message
    assert last == ("0 passed, 1 failed" if line else "0 passed, 0 failed")


def test_one_bad_line_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path / "cases", "{", json.dumps(case()), "")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


def test_a_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().out


def test_values_that_nobody_knows_are_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path / "cases", json.dumps(case(expected={"colour": 1})))]) == 1
    assert "colour: expected 1, came 'nothing of that name'" in capsys.readouterr().out
