"""The files of a report, made from recorded lines."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator.bench import prompts
from orchestrator.bench.comparison import Gap
from orchestrator.bench.findings import WayFindings, find
from orchestrator.bench.record import Record, read_record
from orchestrator.bench.report import PairReport, Report
from orchestrator.bench.report_files import write
from orchestrator.bench.way import Way
from tests.orchestrator.bench.recorded import (
    DRAFT,
    HEADING,
    IDS,
    NO_TIME,
    PLAIN,
    TARGET,
    measured,
    reply,
)

SCHEMA = json.loads(
    (Path(prompts.__file__).parent / "report.schema.json").read_text(encoding="utf-8")
)
DRAFTED = replace(
    PLAIN, plain_steps=1, candidates_proposed=9, candidates_examined=8, candidates_accepted=6,
    lookup_rounds=1, lookup_proposed=3, lookup_examined=3, lookup_accepted=2,
)  # fmt: skip
SECONDS = {
    Way.TRANSFORMERS: 0.10,
    Way.TRANSFORMERS_UAG: 0.20,
    Way.OFF: 0.12,
    Way.AUTO: 0.05,
    Way.FORCED: 0.15,
    Way.LOOKUP: 0.06,
    Way.MODEL: 0.11,
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """By way of a file, as it is after a benchmark."""
    path = tmp_path_factory.mktemp("bench") / "requests.jsonl"
    time = replace(NO_TIME, draft_seconds=0.2)
    with Record(path) as record:
        for prompt, kind in (("a", "code"), ("b", "prose")):
            for way, seconds in SECONDS.items():
                figures = PLAIN if way is Way.OFF else DRAFTED
                ids = (*IDS[:3], 99) if (way, prompt) == (Way.AUTO, "b") else IDS
                answer = reply(seconds, ids, speculation=figures, time=time)
                record.add(measured(way, prompt, answer, kind=kind))
    found = find(list(read_record(path)), Way.TRANSFORMERS, lambda *_: Gap(0.5, 0.125))
    return Report(HEADING, (PairReport.of(TARGET, DRAFT, found),))


def test_the_json_is_as_its_schema_says(report: Report, tmp_path: Path) -> None:
    written = write(report, tmp_path)
    assert [path.name for path in written.files] == ["report.md", "report.json", "report.png"]
    assert written.missing is None
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    (pair,) = content["pairs"]
    ways: dict[str, Any] = {way["way"]: way for way in pair["ways"]}
    assert ways["auto"]["speed"]["overall"]["median"] == pytest.approx(2)
    assert ways["auto"]["speed_over_off"]["overall"]["median"] == pytest.approx(2.4)
    assert ways["auto"]["metrics"]["time_per_output_token"]["unit"] == "ms"
    assert ways["transformers"]["time_shares"] == {}
    (difference,) = ways["auto"]["ids"]["differences"]
    assert (difference["prompt"], difference["position"]) == ("b", 3)
    assert difference["near_tie"] is False
    assert [limit["name"] for limit in pair["limits"]] == [
        "best_sequential", "unlimited_verifier", "lookup_rounds", "better_of_both",
    ]  # fmt: skip
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_the_schema_refuses_what_it_does_not_know(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path)
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    content["pairs"][0]["ways"][0]["metrics"]["gap_between_chunks"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(content)


def test_the_page_tells_it_all(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path)
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    for part in (
        "| machine | a processor, 2 cores, 8.00 GB |",
        "| threads of a model | 1 |",
        "- noted",
        "![speed by way and kind](report.png)",
        "## Target large, draft small, greedy",
        "- target: large (abc), LlamaForCausalLM, 135 M parameters, bfloat16 on cpu",
        "- draft: small (local, tokenizer 000000000000)",
        "| uag, auto: as it pays | 2.00 (2.00 to 2.00) |",
        "| 8 of 10: 0.80 (0.80) | 4 of 6: 0.67 (0.67) |",
        "| 1 of 2 | b at token 3 (logits 0.500 apart, a step there is 0.125: NO near-tie) |",
        "| best sequential | the draft model and the target in turns,",
        "- Use it (auto), for every kind:",
    ):
        assert part in page, page


def test_without_matplotlib_there_is_no_picture_and_a_line_says_why(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    written = write(report, tmp_path)
    assert written.missing == "no picture: `pip install 'uag[bench]'` draws one"
    assert [path.name for path in written.files] == ["report.md", "report.json"]
    assert "![" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_limit_without_end_is_null_in_json(report: Report, tmp_path: Path) -> None:
    (pair,) = report.pairs
    endless = replace(pair.findings.bounds[0], limit=float("inf"))
    found = replace(pair.findings, bounds=(endless,))
    write(replace(report, pairs=(replace(pair, findings=found),)), tmp_path)
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert content["pairs"][0]["limits"][0]["limit"] is None


@pytest.mark.parametrize(
    ("dtype", "gap", "wrong"),
    [
        ("bfloat16", Gap(0.5, 0.125), True),
        ("bfloat16", Gap(0.25, 0.125), False),
        ("bfloat16", None, False),
        ("float32", Gap(0.0, 0.125), True),
        ("float32", None, True),
    ],
)
def test_ids_may_part_at_near_ties_alone_and_never_in_float32(
    report: Report, dtype: str, gap: Gap | None, wrong: bool
) -> None:
    (pair,) = report.pairs
    judged = [_judged(way, gap) for way in pair.findings.ways]
    findings = replace(pair.findings, ways=tuple(judged))
    changed = replace(pair, target=replace(TARGET, dtype=dtype), findings=findings)
    told = list(replace(report, pairs=(changed,)).wrong_ids())
    words = "Target large, draft small, greedy: auto parts from off at token 3 of b"
    assert told == ([words] if wrong else [])


def _judged(way: WayFindings, gap: Gap | None) -> WayFindings:
    if way.ids is None:
        return way
    differences = tuple(replace(each, gap=gap) for each in way.ids.differences)
    return replace(way, ids=replace(way.ids, differences=differences))
