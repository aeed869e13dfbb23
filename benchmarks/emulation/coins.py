"""Which tokens of an answer a draft is wrong at, and how likely it thinks each to be right. Pure.

Each token is right with its own probability, and these are the acceptance on average. The number of
wrong ones has no chance in it: it is what is to be expected, to within one, so that an answer of a
few hundred tokens has the acceptance that was asked for. But for that, tokens are independent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.emulation.scenario import Scenario, Telling


@dataclass(frozen=True, slots=True)
class Coins:
    """Of each token of an answer: whether the draft is right, and the probability that it is."""

    right: tuple[bool, ...]
    probabilities: tuple[float, ...]


def toss(scenario: Scenario, tokens: int) -> Coins:
    """The same each time for the same scenario, whatever its costs are."""
    key = f"{scenario.seed} {scenario.recording} {scenario.acceptance:g} {scenario.telling.value}"
    dice = random.Random(key)  # noqa: S311 - nothing is to be kept secret
    probabilities = _probabilities(scenario, tokens, dice)
    wrong = _chosen([1.0 - p for p in probabilities], dice)
    return Coins(tuple(at not in wrong for at in range(tokens)), tuple(probabilities))


def _probabilities(scenario: Scenario, tokens: int, dice: random.Random) -> list[float]:
    """Informed: spread as a Beta distribution B(a / (1 - a), 1), whose mean is a."""
    a = scenario.acceptance
    if scenario.telling is Telling.CONSTANT or a in (0.0, 1.0):
        return [a] * tokens
    spread = [((at + 0.5) / tokens) ** ((1.0 - a) / a) for at in range(tokens)]
    dice.shuffle(spread)
    return spread


def _chosen(shares: Sequence[float], dice: random.Random) -> set[int]:
    """Places, each with the probability that `shares` has for it, and as many in all as their sum:
    in random order, a walk along the shares stops at one place for each whole number passed."""
    order = list(range(len(shares)))
    dice.shuffle(order)
    walked, chosen = dice.random(), set[int]()
    for at in order:
        before, walked = walked, walked + shares[at]
        if int(walked) > int(before):
            chosen.add(at)
    return chosen
