"""Two ways on the same prompts: how much faster, and whether with the same ids. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.bench.statistics import Spread
from uag_common.common_prefix import common_prefix

Seconds = Callable[[Reply], float | None]

NEAR_TIE_SPACINGS = 2
"""The two logits of a near-tie lie within so many steps of their format: each may be off by the
rounding of another order of summation."""


@dataclass(frozen=True, slots=True)
class KindSpread:
    """The ratios of one kind of prompts."""

    kind: str
    spread: Spread


@dataclass(frozen=True, slots=True)
class Speed:
    """Times as fast as the way `base`, over pairs of requests for the same prompt."""

    base: str
    overall: Spread
    kinds: tuple[KindSpread, ...]

    @property
    def worst(self) -> KindSpread:
        """The kind with the lowest median."""
        return min(self.kinds, key=lambda each: each.spread.median)


def speed(
    measured: Sequence[Measurement], base: Sequence[Measurement], seconds: Seconds
) -> Speed | None:
    """None if no prompt was answered both ways, with tokens enough to tell."""
    ratios = list(_ratios(measured, base, seconds))
    if not ratios:
        return None
    kinds = dict.fromkeys(kind for kind, _ in ratios)
    return Speed(
        base=base[0].way,
        overall=Spread.of([ratio for _, ratio in ratios]),
        kinds=tuple(
            KindSpread(kind, Spread.of([ratio for of, ratio in ratios if of == kind]))
            for kind in kinds
        ),
    )


def _ratios(
    measured: Sequence[Measurement], base: Sequence[Measurement], seconds: Seconds
) -> Iterator[tuple[str, float]]:
    others = {each.pair: seconds(each.reply) for each in base}
    for each in measured:
        one, other = seconds(each.reply), others.get(each.pair)
        if one and other:
            yield each.kind, other / one


@dataclass(frozen=True, slots=True)
class Gap:
    """How far apart the target's logits of two tokens are, and a step of their format there."""

    logits: float
    spacing: float

    @property
    def near_tie(self) -> bool:
        return self.logits <= NEAR_TIE_SPACINGS * self.spacing


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers part: the place of the first other token, from 0. `gap`: if it was looked
    up."""

    prompt: str
    repetition: int
    position: int
    gap: Gap | None


@dataclass(frozen=True, slots=True)
class Sameness:
    """The ids of a way beside those of the way `base`."""

    base: str
    compared: int
    differences: tuple[Difference, ...]

    @property
    def identical(self) -> int:
        return self.compared - len(self.differences)


Judge = Callable[[Measurement, Measurement, int], Gap | None]


def unjudged(_base: Measurement, _other: Measurement, _position: int) -> Gap | None:
    """For where nobody has the logits."""
    return None


def sameness(
    measured: Sequence[Measurement], base: Sequence[Measurement], judge: Judge
) -> Sameness | None:
    """None if no prompt was answered both ways."""
    others = {each.pair: each for each in base}
    pairs = [(others[each.pair], each) for each in measured if each.pair in others]
    if not pairs:
        return None
    return Sameness(
        base=base[0].way,
        compared=len(pairs),
        differences=tuple(
            _difference(other, each, judge)
            for other, each in pairs
            if other.reply.ids != each.reply.ids
        ),
    )


def _difference(base: Measurement, other: Measurement, judge: Judge) -> Difference:
    position = common_prefix(base.reply.ids, other.reply.ids)
    both = position < min(len(base.reply.ids), len(other.reply.ids))
    gap = judge(base, other, position) if both else None
    return Difference(other.prompt, other.repetition, position, gap)
