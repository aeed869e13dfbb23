"""What rules and dashboards ask for is there: each metric, label and value stands in the pages of
the running services or in the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

import promql_parser as ast
import pytest

from orchestrator.events import FinishReason
from tests.monitoring import promql
from tests.monitoring.expressions import Expression, all_expressions, recordings
from tests.monitoring.metrics_page import Scrape
from uag_common.errors import Status

SCRAPED_LABELS = {"job", "instance"}
"""Prometheus puts them on each series."""

POD_LABELS = {"pod"}
"""In a cluster besides; elsewhere nothing is lost by dropping what is not there."""

JOBS = {"uag-orchestrator", "uag-draft", "uag-verify"}

TOKENS: Mapping[str, str] = {
    "uag_generation_tokens_total": "target",
    "uag_prompt_tokens_total": "target",
    "uag_prompt_cached_tokens_total": "target",
    "uag_spec_decode_num_draft_tokens_total": "target",
    "uag_spec_decode_num_examined_tokens_total": "target",
    "uag_spec_decode_num_accepted_tokens_total": "target",
    "uag_draft_model_tokens_total": "draft",
    "uag_draft_model_tokens_unconverted_total": "draft",
    "uag_draft_model_tokens_rolled_back_total": "draft",
    "uag_planned_draft_tokens_sum": "draft",
}
"""Whose tokens a metric counts."""

EXPRESSIONS = all_expressions()
each_expression = pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)


def test_there_are_expressions_of_both_kinds() -> None:
    assert any(expression.place in recordings() for expression in EXPRESSIONS)
    assert any(expression.place.startswith("uag.json") for expression in EXPRESSIONS)


@each_expression
def test_each_expression_is_promql_with_all_variables_filled(expression: Expression) -> None:
    ast.parse(expression.text)
    assert "$" not in expression.text


@each_expression
def test_each_metric_is_one_that_a_service_shows(expression: Expression, scrape: Scrape) -> None:
    known = scrape.names | recordings().keys() | {"up"}
    used = set(promql.metrics(ast.parse(expression.text)))
    assert used <= known, f"not shown by any service: {used - known}"


@each_expression
def test_each_label_is_one_that_its_metric_has(expression: Expression, scrape: Scrape) -> None:
    tree = ast.parse(expression.text)
    for selector in promql.selectors(tree):
        wrong = {matched.label for matched in selector.matched} - known_labels(
            selector.metric, scrape
        )
        assert not wrong, f"{selector.metric} has no label {wrong}"
    for grouping in promql.groupings(tree):
        for metric in grouping.metrics:
            wrong = {*grouping.labels} - known_labels(metric, scrape) - POD_LABELS
            assert not wrong, f"{metric} has no label {wrong}"


def known_labels(metric: str, scrape: Scrape) -> set[str]:
    """A recorded series has what is left of those that it is made of."""
    recorded = recordings().get(metric)
    if recorded is None:
        return scrape.labels(metric) | SCRAPED_LABELS
    tree = ast.parse(recorded)
    labels = (known_labels(name, scrape) for name in promql.metrics(tree))
    return set.intersection(*labels) - promql.dropped_labels(tree) - {"le"}


@each_expression
def test_each_label_value_is_one_that_occurs(expression: Expression, scrape: Scrape) -> None:
    for selector in promql.selectors(ast.parse(expression.text)):
        for matched in selector.matched:
            known = known_values(matched.label, scrape)
            for value in alternatives(matched):
                assert any(value.fullmatch(one) for one in known), f"{matched} matches nothing"


def known_values(label: str, scrape: Scrape) -> set[str]:
    """Those that an installation may have; a test does not bring about every status and reason."""
    match label:
        case "status":
            return {*get_args(Status), "OK"}
        case "finish_reason":
            return {reason.value for reason in FinishReason}
        case "job":
            return JOBS
        case "instance":
            return {"127.0.0.1:9464"}
        case _:
            return scrape.values(label)


def alternatives(matched: promql.Matched) -> list[re.Pattern[str]]:
    """Each must match something: one that does not is a slip of the pen."""
    if not matched.pattern:
        return [re.compile(re.escape(matched.value))]
    if "(" in matched.value:
        return [re.compile(matched.value)]
    return [re.compile(part) for part in matched.value.split("|")]


@each_expression
def test_growth_is_asked_of_counters_and_the_present_of_gauges(
    expression: Expression, scrape: Scrape
) -> None:
    """A counter by itself tells how long a process has been running; a gauge does not only grow."""
    tree = ast.parse(expression.text)
    rated = set(promql.rated(tree))
    for metric in promql.metrics(tree):
        kind = scrape.kinds.get(metric, "gauge")
        assert (metric in rated) is (kind in {"counter", "histogram"}), f"{metric} is a {kind}"


@each_expression
def test_quantiles_are_taken_of_buckets_by_their_bounds(expression: Expression) -> None:
    for call in promql.nodes(ast.parse(expression.text), ast.Call):
        if call.func.name != "histogram_quantile":
            continue
        share, summed = call.args
        assert isinstance(share, ast.NumberLiteral)
        assert 0 < share.val < 1
        assert isinstance(summed, ast.AggregateExpr)
        assert promql.keeps(summed, "le")
        assert all(name.endswith("_bucket") for name in promql.rated(summed))
        assert promql.rated(summed)


@each_expression
def test_buckets_are_kept_apart(expression: Expression) -> None:
    tree = ast.parse(expression.text)
    kept = [
        name
        for node in promql.nodes(tree, ast.AggregateExpr)
        if promql.keeps(node, "le")
        for name in promql.metrics(node)
    ]
    assert all(name in kept for name in promql.metrics(tree) if name.endswith("_bucket"))


@each_expression
def test_a_share_of_tokens_is_of_tokens_of_the_same_model(expression: Expression) -> None:
    """A draft token is no target token: their quotient depends on two vocabularies."""
    for numerator, denominator in promql.divisions(ast.parse(expression.text)):
        above = {TOKENS[name] for name in numerator if name in TOKENS}
        below = {TOKENS[name] for name in denominator if name in TOKENS}
        assert not above or not below or above == below, f"{numerator} / {denominator}"
