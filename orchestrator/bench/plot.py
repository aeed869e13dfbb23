"""The picture of a report: the speed of each way by kind. Knows matplotlib, and does without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.bench.comparison import KindSpread
from orchestrator.bench.findings import WayFindings
from orchestrator.bench.report import PairReport, Report
from orchestrator.bench.way import Way

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVERY_KIND = "all"
WIDTH = 0.8
"""Of the room that a kind has, what its ways take."""
INCHES_OF_KIND, INCHES_OF_ROW, LEAST_INCHES = 1.1, 4.0, 9.0


class NoMatplotlibError(Exception):
    """There is no picture, and the message says what to install."""


def draw(report: Report, path: Path) -> None:
    """A row for each pair and temperature; dots are medians, whiskers quartiles. Raises
    NoMatplotlibError, or OSError."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoMatplotlibError("no picture: `pip install 'uag[bench]'` draws one") from error
    rows = max(1, len(report.pairs))
    kinds = max((len(pair.findings.kinds) for pair in report.pairs), default=0) + 1
    size = max(LEAST_INCHES, INCHES_OF_KIND * kinds), INCHES_OF_ROW * rows
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    for number, pair in enumerate(report.pairs, start=1):
        _draw_pair(figure.add_subplot(rows, 1, number), pair)
    figure.savefig(path, dpi=120)


def _draw_pair(axes: Axes, pair: PairReport) -> None:
    found = pair.findings
    ways = [way for way in found.ways if way.speed is not None and way.way is not found.baseline]
    kinds = [EVERY_KIND, *found.kinds]
    for number, way in enumerate(ways):
        shift = WIDTH * ((number + 0.5) / len(ways) - 0.5)
        _draw_way(axes, way, kinds, shift)
    axes.axhline(1, color="black", linewidth=0.8)
    for number in range(1, len(kinds)):
        axes.axvline(number - 0.5, color="lightgrey", linewidth=0.6)
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_xlim(-0.5, len(kinds) - 0.5)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"speed, {found.baseline.value} = 1")
    axes.grid(axis="y", alpha=0.3)
    axes.set_title(pair.title, fontsize=10)
    if ways:
        axes.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08))


def _draw_way(axes: Axes, way: WayFindings, kinds: list[str], shift: float) -> None:
    if way.speed is None:
        return
    spreads = [KindSpread(EVERY_KIND, way.speed.overall), *way.speed.kinds]
    axes.errorbar(
        [kinds.index(each.kind) + shift for each in spreads],
        [each.spread.median for each in spreads],
        yerr=[
            [each.spread.median - each.spread.q1 for each in spreads],
            [each.spread.q3 - each.spread.median for each in spreads],
        ],
        # The same colour in each row, whichever ways it has.
        color=f"C{list(Way).index(way.way)}",
        fmt="o" if way.is_ours else "s",
        markersize=4,
        linewidth=1,
        label=way.title,
    )
