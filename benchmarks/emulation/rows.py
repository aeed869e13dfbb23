"""What is told of a way in a cell: a line of the table, an entry of the JSON file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.emulation.grid import AUTO, OFF, Cell, Figures, Measured, Way
from orchestrator.bench.limits import best_sequential, unlimited_verifier

HEAD = (
    "step, ms",
    "a",
    "c",
    "way",
    "tokens/s",
    "measured a",
    "x off",
    "limit",
    "unlimited",
    "efficiency",
    "at measured a",
    "absolute",
    "tokens a round",
    "outside, ms a round",
    "convert",
    "network, queue",
)


@dataclass(frozen=True, slots=True)
class Row:
    """`times_off`: rate by that without drafts; `efficiency`: that by the sequential limit, with
    the acceptance that was asked for and with the one that was counted; `absolute`: the rate by
    that of the limit, where a plain step takes no more than the emulated one."""

    cell: Cell
    way: str
    tokens_per_second: float
    acceptance: float | None
    times_off: float
    sequential_limit: float
    unlimited_limit: float
    efficiency: float
    efficiency_at_acceptance: float | None
    absolute: float
    outside_ms_per_round: float
    figures: Figures

    @classmethod
    def of(cls, measured: Measured, way: Way) -> Row:
        cell, figures = measured.cell, measured.figures[way]
        limit, counted = best_sequential(cell.a, cell.c).speed_up, figures.acceptance
        times_off = figures.rate / measured.figures[OFF].rate
        return cls(
            cell=cell,
            way=way.name,
            tokens_per_second=figures.rate,
            acceptance=counted,
            times_off=times_off,
            sequential_limit=limit,
            unlimited_limit=unlimited_verifier(cell.a, cell.c),
            efficiency=times_off / limit,
            efficiency_at_acceptance=(
                None if counted is None else times_off / best_sequential(counted, cell.c).speed_up
            ),
            absolute=figures.rate * cell.step_ms / 1000 / limit,
            outside_ms_per_round=figures.outside_ms,
            figures=figures,
        )

    def cells(self) -> tuple[str, ...]:
        """As `HEAD` has them."""
        figures = self.figures
        waited = figures.network_seconds + figures.queue_seconds
        return (
            f"{self.cell.step_ms:g}",
            f"{self.cell.a:g}",
            f"{self.cell.c:g}",
            self.way,
            f"{self.tokens_per_second:.1f}",
            _optional(self.acceptance),
            f"{self.times_off:.2f}",
            f"{self.sequential_limit:.2f}",
            f"{self.unlimited_limit:.2f}",
            f"{self.efficiency:.3f}",
            _optional(self.efficiency_at_acceptance),
            f"{self.absolute:.3f}",
            f"{figures.tokens / figures.rounds:.2f}",
            f"{self.outside_ms_per_round:.2f}",
            f"{1000 * figures.convert_seconds / figures.rounds:.2f}",
            f"{1000 * waited / figures.rounds:.2f}",
        )


def _optional(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}"


def rows(measured: Measured) -> list[Row]:
    """Of all ways in one cell."""
    return [Row.of(measured, way) for way in measured.figures]


def table(found: Sequence[Measured]) -> Iterator[str]:
    """In Markdown; of the forced ways the fastest alone."""
    yield _line(HEAD)
    yield _line(["---"] * len(HEAD))
    for measured in found:
        shown = (OFF, fastest_forced(measured), AUTO)
        for way in (each for each in shown if each in measured.figures):
            yield _line(Row.of(measured, way).cells())


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def fastest_forced(measured: Measured) -> Way:
    """By hindsight."""
    fixed = [way for way in measured.figures if way not in (OFF, AUTO)]
    return max(fixed, key=lambda way: measured.figures[way].rate)
