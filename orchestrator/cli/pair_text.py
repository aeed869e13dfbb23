"""The report on a pair as text. Pure."""

from __future__ import annotations

from orchestrator.cli.needs import gigabytes
from orchestrator.cli.pair_check import ModelFacts, PairReport
from orchestrator.cli.probe import Probe
from orchestrator.cli.table import columns


def pair_lines(report: PairReport) -> list[str]:
    """The two models, the verdict, the round trip."""
    models = columns([("draft", *_cells(report.draft)), ("target", *_cells(report.target))])
    return [*models, *verdict_lines(report)]


def verdict_lines(report: PairReport) -> list[str]:
    """The verdict and the round trip."""
    verdict = f"{report.verdict.value}: {report.note}"
    return [verdict] if report.probe is None else [verdict, _probe_line(report.probe)]


def _cells(model: ModelFacts) -> tuple[str, ...]:
    context = "unknown" if model.context_length is None else f"{model.context_length} tokens"
    return (
        model.name,
        model.architecture,
        f"context {context}",
        f"memory {gigabytes(model.float32_bytes)} float32, "
        f"{gigabytes(model.bfloat16_bytes)} bfloat16",
    )


def _probe_line(probe: Probe) -> str:
    exact = (
        f"all {probe.texts} texts came back byte for byte on both sides"
        if probe.draft_exact == probe.target_exact == probe.texts
        else f"of {probe.texts} texts came back byte for byte: {probe.draft_exact} through the "
        f"draft's vocabulary, {probe.target_exact} through the target's"
    )
    return f"round trip: {exact}; {probe.draft_per_target:.2f} draft tokens for one target token"
