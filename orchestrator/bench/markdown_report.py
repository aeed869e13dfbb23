"""A report as Markdown. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.bench.acceptance import Acceptance
from orchestrator.bench.comparison import Sameness, Speed
from orchestrator.bench.findings import Findings
from orchestrator.bench.heading import Heading, ModelFacts
from orchestrator.bench.report import PairReport, Report
from orchestrator.bench.statistics import Summary

NOTHING = "–"
SHOWN_DIFFERENCES = 5


def text(report: Report, picture: str | None) -> str:
    """`picture`: the name of a file beside it."""
    parts = ["# Benchmark of drafting", *_heading(report.heading)]
    if picture is not None:
        parts.append(f"![speed by way and kind]({picture})")
    for pair in report.pairs:
        parts += _pair(pair)
    return "\n\n".join(parts) + "\n"


def _heading(heading: Heading) -> Iterator[str]:
    machine, wishes, prompts = heading.machine, heading.wishes, heading.prompts
    accelerators = ", ".join(machine.accelerators) or "none"
    threads = "as the library chooses" if heading.threads is None else f"{heading.threads}"
    rows = [
        ("date", heading.date),
        ("uag", heading.version),
        ("machine", f"{machine.cpu}, {machine.cores} cores, {_gigabytes(machine.memory_bytes)}"),
        ("accelerators", accelerators),
        ("system", f"{machine.system}, Python {machine.python}"),
        ("libraries", f"torch {machine.torch}, transformers {machine.transformers}"),
        ("threads of a model", threads),
        ("prompts", f"{len(prompts.prompts)} of {prompts.file}: {', '.join(prompts.kinds)}"),
        (
            "requests",
            f"up to {wishes.tokens} tokens, {wishes.repeat} of each prompt and way, seed "
            f"{wishes.seed}",
        ),
    ]
    yield _table(("", ""), rows)
    if heading.notes:
        yield "\n".join(f"- {note}" for note in heading.notes)


def _pair(pair: PairReport) -> Iterator[str]:
    found = pair.findings
    yield f"## {pair.title}"
    yield "\n".join(
        _model(name, facts) for name, facts in (("target", pair.target), ("draft", pair.draft))
    )
    yield "\n".join(f"- {sentence}" for sentence in pair.verdict)
    yield _speeds(found)
    yield _kinds(found)
    yield _drafts(found)
    yield _shares(found)
    if found.bounds:
        yield _limits(found)
    yield _same_ids(found)


def _model(role: str, facts: ModelFacts) -> str:
    revision = facts.revision or f"local, tokenizer {facts.tokenizer_sha256[:12]}"
    return (
        f"- {role}: {facts.model_id} ({revision}), {facts.architecture}, "
        f"{facts.parameter_count / 1e6:.0f} M parameters, {facts.dtype} on {facts.device}, weights "
        f"{_gigabytes(facts.weight_bytes)}"
    )


def _speeds(found: Findings) -> str:
    header = (
        "way",
        f"speed, {found.baseline.value} = 1: median (quartiles)",
        "worst kind",
        "whole request",
        "ms per output token",
        "tokens/s",
        "first token, ms",
        "requests",
    )
    rows = [
        (
            way.title,
            _spread(way.speed),
            _worst(way.speed),
            NOTHING if way.request_speed is None else f"{way.request_speed.overall.median:.2f}",
            _mean(way.metric("time_per_output_token")),
            _mean(way.metric("output_tokens_per_second")),
            _mean(way.metric("time_to_first_token")),
            f"{way.requests}" + (f", {way.degraded} degraded" if way.degraded else ""),
        )
        for way in found.ways
    ]
    return "### Speed\n\n" + _table(header, rows)


def _kinds(found: Findings) -> str:
    header = ("way", *found.kinds)
    rows = [(way.title, *_of_kinds(way.speed, found.kinds)) for way in found.ways]
    return f"### Speed by kind, {found.baseline.value} = 1 (medians)\n\n" + _table(header, rows)


def _of_kinds(speed: Speed | None, kinds: Sequence[str]) -> list[str]:
    medians = {} if speed is None else {each.kind: each.spread.median for each in speed.kinds}
    return [f"{medians[kind]:.2f}" if kind in medians else NOTHING for kind in kinds]


def _drafts(found: Findings) -> str:
    header = (
        "way", "tokens per round", "draft model: accepted of examined, pooled (mean of requests)",
        "lookup: the same",
    )  # fmt: skip
    rows = [
        (
            way.title,
            _mean(way.metric("tokens_per_round"), digits=2),
            _acceptance(way.model_acceptance),
            _acceptance(way.lookup_acceptance),
        )
        for way in found.ways
    ]
    return "### Rounds and acceptance\n\n" + _table(header, rows)


def _shares(found: Findings) -> str:
    timed = [way for way in found.ways if way.shares]
    if not timed:
        return "### Time by part\n\nNobody told it."
    parts = [share.part for share in timed[0].shares]
    rows = [(way.title, *(f"{share.share:.0%}" for share in way.shares)) for way in timed]
    return "### Time by part, of all requests together\n\n" + _table(("way", *parts), rows)


def _limits(found: Findings) -> str:
    rows = [
        (
            bound.name.replace("_", " "),
            bound.of,
            f"{bound.limit:.2f}",
            f"{bound.way.value}: {bound.measured:.2f}",
            f"{bound.efficiency:.0%}",
        )
        for bound in found.bounds
    ]
    header = ("limit", "of", "times our own plain step", "measured, off = 1", "measured / limit")
    return "### Limits\n\n" + _costs(found) + _table(header, rows)


def _costs(found: Findings) -> str:
    if found.costs is None:
        return ""
    costs = found.costs
    return (
        f"Measured: a = {costs.a:.2f} (accepted of examined), c = {costs.c:.2f} (to draft a "
        f"candidate), v = {costs.v:.2f} (a verification), r = {costs.r:.2f} (a round outside both "
        f"models); c, v and r in plain steps of the target, {1000 * costs.plain_step:.1f} ms. The "
        "limits take v = 1 and r = 0.\n\n"
    )


def _same_ids(found: Findings) -> str:
    compared = [(way, way.ids) for way in found.ways if way.ids is not None]
    if not compared:
        return "### Same ids\n\nNothing to compare with."
    rows = [
        (way.title, f"{ids.identical} of {ids.compared}", _differences(ids))
        for way, ids in compared
    ]
    header = ("way", f"identical to {compared[0][1].base}", "where the others part")
    return "### Same ids\n\n" + _table(header, rows)


def _differences(ids: Sameness) -> str:
    told = [
        f"{each.prompt} at token {each.position}"
        + ("" if each.gap is None else f" (logits {each.gap.logits:.3f} apart, a step there is "
           f"{each.gap.spacing:.3f}: {'near-tie' if each.gap.near_tie else 'NO near-tie'})")
        for each in ids.differences[:SHOWN_DIFFERENCES]
    ]  # fmt: skip
    more = len(ids.differences) - len(told)
    return "; ".join([*told, *([f"{more} more"] if more else [])]) or NOTHING


def _spread(speed: Speed | None) -> str:
    if speed is None:
        return NOTHING
    of = speed.overall
    return f"{of.median:.2f} ({of.q1:.2f} to {of.q3:.2f})"


def _worst(speed: Speed | None) -> str:
    return NOTHING if speed is None else f"{speed.worst.kind} {speed.worst.spread.median:.2f}"


def _mean(summary: Summary | None, digits: int = 1) -> str:
    if summary is None:
        return NOTHING
    return f"{summary.avg:.{digits}f} ± {summary.std:.{digits}f}"


def _acceptance(found: Acceptance | None) -> str:
    if found is None:
        return NOTHING
    return f"{found.accepted} of {found.examined}: {found.pooled:.2f} ({found.mean:.2f})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
