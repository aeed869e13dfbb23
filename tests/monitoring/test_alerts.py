"""The rule file: what an alert tells, where it leads, and by promtool when it fires."""

from __future__ import annotations

import re
import shutil
import subprocess

import promql_parser as ast
import pytest
import yaml

from tests.docs.pages import Page
from tests.monitoring import promql
from tests.monitoring.expressions import (
    ALERTS,
    ALERTS_TEST,
    ROOT,
    Alert,
    Expression,
    alerts,
    all_expressions,
    recordings,
)
from tests.monitoring.metrics_page import Scrape
from tests.monitoring.test_expressions import known_labels

RECORDED_NAME = re.compile(r"^[a-z_]+:[a-z_0-9]+:[a-z_0-9]+$")
A_LABEL = re.compile(r"\$labels\.(\w+)")
AN_ID = re.compile(r'<a (?:id|name)="([^"]+)">')

each_alert = pytest.mark.parametrize("alert", alerts(), ids=str)
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="no promtool on the PATH: it comes with Prometheus (Debian: apt install prometheus)",
)


@each_alert
def test_an_alert_tells_what_is_felt_and_where_to_look(alert: Alert) -> None:
    assert alert.labels.keys() == {"severity"}
    assert alert.labels["severity"] in {"critical", "warning"}
    assert alert.annotations.keys() == {"summary", "description", "runbook"}
    assert not alert.annotations["summary"].endswith(".")
    assert alert.annotations["description"].endswith(".")


@each_alert
def test_an_alert_leads_to_its_symptom_in_the_docs(alert: Alert) -> None:
    path, _, anchor = alert.annotations["runbook"].partition("#")
    page = Page.read((ROOT / path).relative_to(ROOT))
    assert anchor in page.anchors() | set(AN_ID.findall(page.prose)), alert.annotations["runbook"]


@each_alert
def test_an_alert_speaks_of_labels_that_it_has(alert: Alert, scrape: Scrape) -> None:
    tree = ast.parse(alert.expr)
    told = {label for text in alert.annotations.values() for label in A_LABEL.findall(text)}
    for metric in promql.metrics(tree):
        assert told <= known_labels(metric, scrape) - promql.dropped_labels(tree)


def test_no_name_is_used_twice() -> None:
    names = [alert.name for alert in alerts()]
    assert len(set(names)) == len(names)


def test_what_is_recorded_is_named_by_convention_and_read() -> None:
    """level:metric:operations."""
    read = {name for alert in alerts() for name in promql.metrics(ast.parse(alert.expr))}
    for name in recordings():
        assert RECORDED_NAME.match(name), name
        assert name in read, f"nothing reads {name}"


def test_dashboards_work_without_the_rules() -> None:
    for expression in all_expressions():
        if expression.place.startswith("uag.json"):
            assert not used_recordings(expression), expression.place


def used_recordings(expression: Expression) -> set[str]:
    return recordings().keys() & promql.metrics(ast.parse(expression.text))


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    cases = yaml.safe_load(ALERTS_TEST.read_text(encoding="utf-8"))["tests"]
    fired = {
        re.search(r'alertname="(\w+)"', sample["labels"])
        for case in cases
        for question in case["promql_expr_test"]
        for sample in question["exp_samples"]
    }
    assert {match[1] for match in fired if match} == {alert.name for alert in alerts()}


@needs_promtool
@pytest.mark.parametrize(
    "command", [("check", "rules", ALERTS), ("test", "rules", ALERTS_TEST)], ids=["check", "test"]
)
def test_promtool_agrees(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["promtool", *command],  # noqa: S607 - whichever the developer has
        cwd=ALERTS.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
