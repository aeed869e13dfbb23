"""What to do with a pair, in words, by the medians of its kinds of prompts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.bench.comparison import KindSpread, Speed
from orchestrator.bench.findings import Findings
from orchestrator.bench.way import Way

PAYS = 1.05
"""A median from which on a way is called faster: less is lost in the noise of a shared machine."""
COSTS_NOTHING = 0.97
"""A median down to which a way is not called slower."""
ENOUGH = 3
"""Requests of a kind from which on its median is more than a guess."""


def verdict(findings: Findings, target_bytes: int, draft_bytes: int) -> list[str]:
    """A sentence or two each: whether to use it and for what, what the draft model and looking up
    are worth by themselves, and the memory of both models, whose weights take so many bytes."""
    told = []
    if all(each.over_off is None for each in findings.ways):
        told.append("Nothing can be said of speed: the answers have too few tokens.")
    if (auto := _speed(findings, Way.AUTO)) is not None:
        told.append(_use(auto))
    unused = auto is not None and _never_drafted(findings)
    if unused:
        told.append("The draft model had no part in that: auto did not use it.")
    model = _speed(findings, Way.MODEL) or _speed(findings, Way.FORCED)
    if model is not None:
        told.append(_pays("The draft model alone", model))
    lookup = _speed(findings, Way.LOOKUP)
    if lookup is not None:
        told.append(_pays("Looking up alone", lookup))
    if unused or (auto and model and lookup and _spare(auto, model, lookup)):
        told.append(
            "Without the draft model (draft_tokens=0) the same is had, and "
            f"{_gigabytes(draft_bytes)} of weights less."
        )
    told += _few(auto or model or lookup)
    told.append(
        f"Memory of both: weights {_gigabytes(target_bytes)} (target) and "
        f"{_gigabytes(draft_bytes)} (draft), {_gigabytes(target_bytes + draft_bytes)} together; "
        "caches and programs come on top."
    )
    return told


def _few(found: Speed | None) -> list[str]:
    if found is None:
        return []
    few = [each for each in found.kinds if each.spread.count < ENOUGH]
    if not few:
        return []
    counts = ", ".join(f"{each.kind}: {each.spread.count}" for each in few)
    return [
        f"Some kinds have few requests ({counts}), so take their figures with care; more prompts "
        "of them tell more."
    ]


def _never_drafted(findings: Findings) -> bool:
    auto = findings.way(Way.AUTO)
    return auto is not None and auto.model_acceptance is None


def _speed(findings: Findings, way: Way) -> Speed | None:
    found = findings.way(way)
    return None if found is None else found.over_off


def _use(auto: Speed) -> str:
    gains = [each for each in auto.kinds if each.spread.median >= PAYS]
    losses = [each for each in auto.kinds if each.spread.median < COSTS_NOTHING]
    worst = auto.worst
    if gains and not losses:
        if len(gains) == len(auto.kinds):
            return f"Use it (auto), for every kind: {_kinds(gains)}."
        return (
            f"Use it (auto): faster for {_kinds(gains)}; as fast as the target alone for the rest "
            f"(lowest: {_kind(worst)})."
        )
    if gains:
        return f"Use it (auto) for {_kinds(gains)}, not for {_kinds(losses)}."
    if losses:
        return f"Do not use it with this pair: nothing is faster, and slower is {_kinds(losses)}."
    return (
        "Nothing is gained and nothing is lost (auto): as fast as the target alone for every kind "
        f"(lowest: {_kind(worst)})."
    )


def _pays(who: str, found: Speed) -> str:
    gains = [each for each in found.kinds if each.spread.median >= PAYS]
    losses = [each for each in found.kinds if each.spread.median < COSTS_NOTHING]
    if not gains:
        best = max(found.kinds, key=lambda each: each.spread.median)
        return f"{who} pays for no kind (best: {_kind(best)})."
    told = f"{who} pays for {_kinds(gains)}"
    return f"{told}; it costs for {_kinds(losses)}." if losses else f"{told}."


def _spare(auto: Speed, model: Speed, lookup: Speed) -> bool:
    """Whether the draft model could go: it pays nowhere, and looking up does what auto does."""
    nowhere = all(each.spread.median < PAYS for each in model.kinds)
    return nowhere and lookup.overall.median >= auto.overall.median - (1 - COSTS_NOTHING)


def _kinds(kinds: Iterable[KindSpread]) -> str:
    """From the greatest median on."""
    ordered = sorted(kinds, key=lambda each: each.spread.median, reverse=True)
    return ", ".join(map(_kind, ordered))


def _kind(each: KindSpread) -> str:
    return f"{each.kind} ({each.spread.median:.2f})"


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
