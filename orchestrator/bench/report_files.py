"""The folder that the files of a report go to. Knows files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.bench import json_report, markdown_report, plot
from orchestrator.bench.report import Report

RECORD = "requests.jsonl"


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a report. `missing`: why there is no picture, None if there is one."""

    files: tuple[Path, ...]
    missing: str | None


def write(report: Report, folder: Path) -> Written:
    """report.md, report.json and, where matplotlib is installed, report.png. Raises OSError."""
    picture = folder / "report.png"
    missing = None
    try:
        plot.draw(report, picture)
    except plot.NoMatplotlibError as error:
        missing = str(error)
    told, data = folder / "report.md", folder / "report.json"
    told.write_text(
        markdown_report.text(report, None if missing else picture.name), encoding="utf-8"
    )
    data.write_text(json_report.text(report), encoding="utf-8")
    return Written((told, data) if missing else (told, data, picture), missing)
