"""What the rule file and the dashboards ask Prometheus, as plain values. Knows their formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
ALERTS_TEST = ALERTS.with_name("alerts_test.yml")
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))


@dataclass(frozen=True, slots=True)
class Expression:
    """A query, and where it stands."""

    place: str
    text: str

    def __str__(self) -> str:
        return self.place


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule that tells somebody."""

    name: str
    expr: str
    labels: dict[str, str]
    annotations: dict[str, str]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A file of Grafana's."""

    name: str
    content: dict[str, Any]

    @property
    def panels(self) -> list[dict[str, Any]]:
        """Without the rows, which show nothing."""
        return [panel for panel in self.content["panels"] if panel["type"] != "row"]

    @property
    def queries(self) -> Iterator[Expression]:
        for panel in self.panels:
            for target in panel["targets"]:
                place = f"{self.name}: {panel['title']} {target['refId']}"
                yield Expression(place, target["expr"])

    def filled(self, text: str, interval: str) -> str:
        """A query as Grafana sends it with all jobs and instances chosen."""
        for variable in self.content["templating"]["list"]:
            text = text.replace(f"${variable['name']}", variable.get("allValue", ""))
        return text.replace("$__rate_interval", interval)


@cache
def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> tuple[Alert, ...]:
    return tuple(
        Alert(rule["alert"], rule["expr"], rule["labels"], rule["annotations"])
        for rule in rules()
        if "alert" in rule
    )


@cache
def recordings() -> dict[str, str]:
    """Expressions by the names that they are recorded under."""
    return {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}


def dashboards() -> tuple[Dashboard, ...]:
    return tuple(
        Dashboard(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in DASHBOARDS
    )


def all_expressions() -> tuple[Expression, ...]:
    """Of rules and dashboards, ready to be parsed."""
    recorded = (Expression(name, expr) for name, expr in recordings().items())
    alarming = (Expression(alert.name, alert.expr) for alert in alerts())
    shown = (
        Expression(query.place, dashboard.filled(query.text, interval="1m"))
        for dashboard in dashboards()
        for query in dashboard.queries
    )
    return (*recorded, *alarming, *shown)
