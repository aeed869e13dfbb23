"""What is written while it is measured is what is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.bench.record import Record, read_record
from orchestrator.bench.way import Way
from tests.orchestrator.bench.recorded import PLAIN, measured, reply

DRAFTED = replace(PLAIN, accepted_lengths=(1, 0, 2), lookup_accepted=1)
ALL = [
    measured(Way.MODEL, "a", reply(0.1, speculation=DRAFTED), kind="écriture"),
    measured(Way.TRANSFORMERS, "a", reply(0.2), temperature=0.7),
    measured(Way.AUTO, "b", replace(reply(0.2), degraded="the draft went away")),
]


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    with Record(tmp_path / "requests.jsonl") as record:
        for each in ALL:
            record.add(each)
    assert list(read_record(tmp_path / "requests.jsonl")) == ALL


def test_each_line_is_there_before_the_next_request(tmp_path: Path) -> None:
    with Record(tmp_path / "requests.jsonl") as record:
        record.add(ALL[0])
        assert list(read_record(tmp_path / "requests.jsonl")) == ALL[:1]


def test_what_is_no_record_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('{"way": "auto"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="x:1 is no measurement"):
        list(read_record(tmp_path / "x"))


def test_an_older_record_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with Record(path) as record:
        record.add(ALL[0])
    with pytest.raises(FileExistsError):
        Record(path)
    assert list(read_record(path)) == ALL[:1]


def test_without_a_measurement_nothing_is_left(tmp_path: Path) -> None:
    with Record(tmp_path / "requests.jsonl") as record:
        assert record.lines == 0
    assert not (tmp_path / "requests.jsonl").exists()
