"""The dashboards can be read: each panel tells what it shows, of what, and in which unit."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import promql_parser as ast
import pytest

from tests.monitoring import promql
from tests.monitoring.expressions import Dashboard, all_expressions, dashboards
from tests.monitoring.metrics_page import Scrape

SHOWN_BY = {"timeseries", "stat", "table", "heatmap"}
"""Kinds of panels that Grafana still develops."""

WIDTH = 24

each_dashboard = pytest.mark.parametrize("dashboard", dashboards(), ids=lambda one: one.name)


@each_dashboard
def test_each_panel_tells_its_meaning_and_its_unit(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        assert panel["type"] in SHOWN_BY, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]


@each_dashboard
def test_each_series_of_several_has_a_name(dashboard: Dashboard) -> None:
    for panel in dashboard.panels:
        names = [target.get("legendFormat") for target in panel["targets"]]
        assert panel["type"] == "table" or all(names), panel["title"]
        assert len(set(names)) == len(names), panel["title"]


@each_dashboard
def test_panels_have_ids_and_places_of_their_own(dashboard: Dashboard) -> None:
    panels = dashboard.content["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= WIDTH for panel in panels)
    for one, other in combinations(panels, 2):
        assert not overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "w"), ("y", "h"))
    )


@each_dashboard
def test_every_query_goes_to_the_chosen_source_job_and_instance(dashboard: Dashboard) -> None:
    assert {variable["name"] for variable in dashboard.content["templating"]["list"]} == {
        "datasource",
        "job",
        "instance",
    }
    for panel in dashboard.panels:
        assert source(panel) == "${datasource}", panel["title"]
        assert all("datasource" not in target for target in panel["targets"]), panel["title"]
    for query in dashboard.queries:
        filtered = query.text.count('job=~"$job",instance=~"$instance"')
        parsed = ast.parse(dashboard.filled(query.text, interval="1m"))
        assert filtered == len(promql.selectors(parsed)), query.place


def source(panel: dict[str, Any]) -> str:
    return str(panel["datasource"]["uid"])


@each_dashboard
def test_the_first_source_is_the_one_that_is_set_up(dashboard: Dashboard) -> None:
    first = dashboard.content["templating"]["list"][0]
    assert first["type"] == "datasource"
    assert first["query"] == first["current"]["value"] == "prometheus"


def test_no_metric_of_ours_is_shown_to_nobody(scrape: Scrape) -> None:
    ours = {family(name) for name in scrape.names if name.startswith("uag_")}
    used = {
        family(name)
        for expression in all_expressions()
        if expression.place.startswith("uag.json")
        for name in promql.metrics(ast.parse(expression.text))
    }
    assert ours <= used, f"in no panel: {ours - used}"


def family(name: str) -> str:
    """A histogram is one thing, whichever of its series is read."""
    for part in ("_bucket", "_sum", "_count"):
        name = name.removesuffix(part)
    return name
