"""A report as JSON, in the form of `report.schema.json`. Pure: values in, text out."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import Enum
from typing import Any

from orchestrator.bench.bounds import Bound
from orchestrator.bench.comparison import Sameness, Speed
from orchestrator.bench.findings import WayFindings
from orchestrator.bench.heading import Heading
from orchestrator.bench.report import PairReport, Report

SCHEMA_VERSION = "1.0"
"""The number before the point changes where a reader of the older form would go wrong."""


def text(report: Report) -> str:
    """With its line break."""
    content = {
        "schema_version": SCHEMA_VERSION,
        **_heading(report.heading),
        "pairs": [_pair(pair) for pair in report.pairs],
    }
    # A limit may be infinite, which JSON cannot say.
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _heading(heading: Heading) -> dict[str, Any]:
    prompts = heading.prompts
    return {
        "uag_version": heading.version,
        "date": heading.date,
        "machine": asdict(heading.machine),
        "settings": {**asdict(heading.wishes), "threads": heading.threads},
        "prompts": {
            "file": prompts.file,
            "sha256": prompts.sha256,
            "count": len(prompts.prompts),
            "kinds": list(prompts.kinds),
        },
        "notes": list(heading.notes),
    }


def _pair(pair: PairReport) -> dict[str, Any]:
    found = pair.findings
    return {
        "target": asdict(pair.target),
        "draft": asdict(pair.draft),
        "temperature": found.temperature,
        "baseline": found.baseline.value,
        "ways": [_way(way) for way in found.ways],
        "costs": None if found.costs is None else asdict(found.costs),
        "limits": [_bound(bound) for bound in found.bounds],
        "verdict": list(pair.verdict),
    }


def _way(way: WayFindings) -> dict[str, Any]:
    return {
        "way": way.way.value,
        "title": way.title,
        "requests": way.requests,
        "degraded": way.degraded,
        "metrics": {metric.name: asdict(metric.summary) for metric in way.metrics},
        "speed": _speed(way.speed),
        "request_speed": _speed(way.request_speed),
        "speed_over_off": _speed(way.over_off),
        "model_acceptance": None if way.model_acceptance is None else asdict(way.model_acceptance),
        "lookup_acceptance": (
            None if way.lookup_acceptance is None else asdict(way.lookup_acceptance)
        ),
        "time_shares": {each.part: each.share for each in way.shares},
        "ids": _ids(way.ids),
    }


def _speed(speed: Speed | None) -> dict[str, Any] | None:
    if speed is None:
        return None
    return {
        "base": speed.base,
        "overall": asdict(speed.overall),
        "kinds": {each.kind: asdict(each.spread) for each in speed.kinds},
        "worst_kind": speed.worst.kind,
    }


def _ids(ids: Sameness | None) -> dict[str, Any] | None:
    if ids is None:
        return None
    return {
        "base": ids.base,
        "compared": ids.compared,
        "identical": ids.identical,
        "differences": [
            {
                "prompt": each.prompt,
                "repetition": each.repetition,
                "position": each.position,
                "gap": None if each.gap is None else asdict(each.gap),
                "near_tie": None if each.gap is None else each.gap.near_tie,
            }
            for each in ids.differences
        ],
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "name": bound.name,
        "of": bound.of,
        "limit": bound.limit if bound.limit < float("inf") else None,
        "way": bound.way,
        "measured": bound.measured,
        "efficiency": bound.efficiency,
    }


def _plain(value: Any) -> Any:
    """With the names of ways in the place of ways."""
    match value:
        case Enum():
            return value.value
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
