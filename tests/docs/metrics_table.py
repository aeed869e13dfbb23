"""The table of all metrics, from what the services register."""

from __future__ import annotations

from tests.docs.names import registered


def table() -> str:
    """In Markdown, by name."""
    rows = [
        f"| `{metric.name}` | {metric.kind} | {_code(metric.labels)} | {metric.help} |"
        for metric in sorted(registered(), key=lambda metric: metric.name)
    ]
    return "\n".join(("| metric | kind | labels | meaning |", "| --- | --- | --- | --- |", *rows))


def _code(labels: frozenset[str]) -> str:
    return ", ".join(f"`{label}`" for label in sorted(labels - {"role"}))
