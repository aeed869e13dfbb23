"""What the measurements of one pair at one temperature say. Pure: measurements in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from orchestrator.bench.acceptance import Acceptance, acceptance, by_lookup, by_model
from orchestrator.bench.bounds import Bound, bounds
from orchestrator.bench.comparison import Judge, Sameness, Speed, sameness, speed, unjudged
from orchestrator.bench.limits import Costs, costs
from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.bench.metrics import Metric, metrics
from orchestrator.bench.statistics import Summary
from orchestrator.bench.way import OURS, TITLES, Way

ByWay = Mapping[Way, Sequence[Measurement]]


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the time of all requests together, from 0 to 1."""

    part: str
    share: float


@dataclass(frozen=True, slots=True)
class WayFindings:
    """A way of answering. `speed`: time per output token against the baseline, `request_speed`: the
    time of whole requests per token, `over_off`: time per output token against our own target
    alone. None is what the measurements cannot tell."""

    way: Way
    title: str
    requests: int
    degraded: int
    metrics: tuple[Metric, ...]
    speed: Speed | None
    request_speed: Speed | None
    over_off: Speed | None
    model_acceptance: Acceptance | None
    lookup_acceptance: Acceptance | None
    shares: tuple[Share, ...]
    ids: Sameness | None

    @property
    def is_ours(self) -> bool:
        return self.way in OURS

    def metric(self, name: str) -> Summary | None:
        """None if no request has it."""
        return next((each.summary for each in self.metrics if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Findings:
    """Of one pair at one temperature. `target` and `draft` are ids of models."""

    target: str
    draft: str
    temperature: float
    baseline: Way
    kinds: tuple[str, ...]
    ways: tuple[WayFindings, ...]
    costs: Costs | None
    bounds: tuple[Bound, ...]

    def way(self, way: Way) -> WayFindings | None:
        """None if it was not measured."""
        return next((each for each in self.ways if each.way is way), None)


def find(measurements: Sequence[Measurement], baseline: Way, judge: Judge = unjudged) -> Findings:
    """All of them are of one pair and one temperature, and there is at least one."""
    by_way = {
        way: found for way in Way if (found := [m for m in measurements if m.way == way.value])
    }
    off = by_way.get(Way.OFF, [])
    first = measurements[0]
    ways = tuple(_of_way(way, by_way, baseline, judge) for way in by_way)
    drafted = by_way.get(Way.FORCED) or by_way.get(Way.MODEL) or []
    cost = costs(drafted, off)
    return Findings(
        target=first.target,
        draft=first.draft,
        temperature=first.temperature,
        baseline=baseline,
        kinds=tuple(dict.fromkeys(each.kind for each in measurements)),
        ways=ways,
        costs=cost,
        bounds=bounds(cost, {each.way: _measured(each) for each in ways}),
    )


def _of_way(way: Way, by_way: ByWay, baseline: Way, judge: Judge) -> WayFindings:
    measured, off = by_way[way], by_way.get(Way.OFF, [])
    base = by_way.get(baseline, [])
    replies = [each.reply for each in measured]
    figures = [reply.speculation for reply in replies if reply.speculation]
    return WayFindings(
        way=way,
        title=TITLES[way],
        requests=len(measured),
        degraded=sum(reply.degraded is not None for reply in replies),
        metrics=tuple(metrics(replies)),
        speed=speed(measured, base, _seconds_per_token),
        request_speed=speed(measured, base, _request_seconds_per_token),
        over_off=speed(measured, off, _seconds_per_token),
        model_acceptance=acceptance(figures, by_model),
        lookup_acceptance=acceptance(figures, by_lookup),
        shares=_shares(replies),
        ids=_ids(way, measured, off, judge),
    )


def _ids(
    way: Way, measured: Sequence[Measurement], off: Sequence[Measurement], judge: Judge
) -> Sameness | None:
    """Others draw with dice of their own."""
    greedy = measured[0].temperature == 0
    if way is Way.OFF or not (greedy or way in OURS):
        return None
    return sameness(measured, off, judge if greedy else unjudged)


def _measured(found: WayFindings) -> tuple[float, float] | None:
    """Speed over our own target alone, and tokens per round."""
    rounds = found.metric("tokens_per_round")
    if not found.is_ours or found.over_off is None or rounds is None:
        return None
    return found.over_off.overall.median, rounds.avg


def _seconds_per_token(reply: Reply) -> float | None:
    return reply.seconds_per_token


def _request_seconds_per_token(reply: Reply) -> float | None:
    return reply.last_seconds / len(reply.ids) if reply.ids else None


def _shares(replies: Sequence[Reply]) -> tuple[Share, ...]:
    """What the parts leave over is `other`; empty where the server told no times."""
    times = [reply.time for reply in replies if reply.time]
    total = sum(each.total_seconds for each in times)
    if not total:
        return ()
    names = [field.name for field in fields(times[0])]
    parts = [name for name in names if name not in ("total_seconds", "first_token_seconds")]
    spent = {name: sum(getattr(each, name) for each in times) for name in parts}
    shares = [
        Share(name.removesuffix("_seconds"), seconds / total) for name, seconds in spent.items()
    ]
    return (*shares, Share("other", max(0.0, 1 - sum(each.share for each in shares))))
