"""A whole benchmark as values: the heading, and each pair with its findings and its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.bench.comparison import Difference
from orchestrator.bench.findings import Findings, WayFindings
from orchestrator.bench.heading import Heading, ModelFacts
from orchestrator.bench.verdict import verdict
from orchestrator.bench.way import Way


@dataclass(frozen=True, slots=True)
class PairReport:
    """A pair at one temperature, its models, and what to do with it."""

    target: ModelFacts
    draft: ModelFacts
    findings: Findings
    verdict: tuple[str, ...]

    @classmethod
    def of(cls, target: ModelFacts, draft: ModelFacts, findings: Findings) -> PairReport:
        words = verdict(findings, target.weight_bytes, draft.weight_bytes)
        return cls(target, draft, findings, tuple(words))

    @property
    def title(self) -> str:
        """One line."""
        found = self.findings
        drawn = f"temperature {found.temperature:g}" if found.temperature else "greedy"
        return f"Target {found.target}, draft {found.draft}, {drawn}"


@dataclass(frozen=True, slots=True)
class Report:
    """All of it."""

    heading: Heading
    pairs: tuple[PairReport, ...]

    def wrong_ids(self) -> Iterator[str]:
        """In words, each way of ours whose ids are not those of the target alone although they must
        be: in float32, and elsewhere where they part at what was found to be no near-tie."""
        for pair in self.pairs:
            exact = pair.target.dtype == "float32"
            for way in pair.findings.ways:
                first = next(_wrong(way, exact=exact), None)
                if first is not None:
                    yield (
                        f"{pair.title}: {way.way.value} parts from {Way.OFF.value} at token "
                        f"{first.position} of {first.prompt}"
                    )


def _wrong(way: WayFindings, *, exact: bool) -> Iterator[Difference]:
    if way.is_ours and way.ids is not None:
        for each in way.ids.differences:
            if exact or (each.gap is not None and not each.gap.near_tie):
                yield each
