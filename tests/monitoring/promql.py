"""What stands inside of a PromQL expression: which series it reads, and by which labels it groups
them. Knows the language, and no metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import promql_parser as ast

T = TypeVar("T", bound=ast.Expr)

OF_COUNTERS = ("rate", "increase")


@dataclass(frozen=True, slots=True)
class Matched:
    """A label and what its value is compared with; a regular expression if `pattern`."""

    label: str
    value: str
    pattern: bool


@dataclass(frozen=True, slots=True)
class Selector:
    """One reading of a metric."""

    metric: str
    matched: tuple[Matched, ...]

    @classmethod
    def of(cls, node: ast.VectorSelector) -> Selector:
        if node.name is None:
            raise ValueError(f"{node} names no metric")
        patterns = (ast.MatchOp.Re, ast.MatchOp.NotRe)
        matched = (Matched(m.name, m.value, m.op in patterns) for m in node.matchers.matchers)
        return cls(node.name, tuple(matched))


@dataclass(frozen=True, slots=True)
class Grouping:
    """Labels that series are put together or matched by, and the metrics that must have them."""

    labels: tuple[str, ...]
    metrics: tuple[str, ...]


def nodes(root: ast.Expr, kind: type[T]) -> list[T]:
    """All parts of that kind, the root included."""
    found: list[T] = []

    def look(node: ast.Expr) -> None:
        if isinstance(node, kind):
            found.append(node)

    ast.walk(root, look)
    return found


def selectors(root: ast.Expr) -> list[Selector]:
    return [Selector.of(node) for node in nodes(root, ast.VectorSelector)]


def metrics(root: ast.Expr) -> tuple[str, ...]:
    return tuple(selector.metric for selector in selectors(root))


def groupings(root: ast.Expr) -> Iterator[Grouping]:
    """Of aggregations, and of operations between two sides."""
    for node in nodes(root, ast.AggregateExpr):
        if node.modifier is not None:
            yield Grouping(tuple(node.modifier.labels), metrics(node.expr))
    for pair in nodes(root, ast.BinaryExpr):
        if pair.modifier is not None and pair.modifier.matching is not None:
            yield Grouping(tuple(pair.modifier.matching.labels), metrics(pair))


def dropped_labels(root: ast.Expr) -> set[str]:
    """Labels that some aggregation takes away by name."""
    return {
        label
        for node in nodes(root, ast.AggregateExpr)
        if node.modifier is not None and node.modifier.type == ast.AggModifierType.Without
        for label in node.modifier.labels
    }


def keeps(node: ast.AggregateExpr, label: str) -> bool:
    """Whether what comes out still has the label."""
    if node.modifier is None:
        return False
    named = label in node.modifier.labels
    return named is (node.modifier.type == ast.AggModifierType.By)


def rated(root: ast.Expr) -> list[str]:
    """Metrics whose growth over a time is read."""
    calls = (call for call in nodes(root, ast.Call) if call.func.name in OF_COUNTERS)
    return [name for call in calls for name in metrics(call)]


def divisions(root: ast.Expr) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Metrics of each numerator, and of its denominator."""
    return [
        (metrics(node.lhs), metrics(node.rhs))
        for node in nodes(root, ast.BinaryExpr)
        if str(node.op) == "/"
    ]
