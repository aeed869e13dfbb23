from __future__ import annotations

import random

import pytest

from orchestrator.speculation.confidence import STEPS, Confidence


def learnt(agrees: float) -> Confidence:
    """Of a draft that is right in that share of what it says of itself."""
    dice, confidence = random.Random(1), Confidence()
    for _ in range(5000):
        probability = dice.random()
        confidence.observe(probability, accepted=dice.random() < agrees * probability)
    return confidence


def test_a_draft_is_first_taken_at_its_word() -> None:
    confidence = Confidence()
    assert confidence.threshold(0.0) == 0.0
    # 0.35 is the middle of the step from 0.3.
    assert confidence.threshold(0.35) == pytest.approx(0.3)
    assert confidence.threshold(1.0) == 1.0


def test_more_is_asked_of_a_draft_that_is_too_sure() -> None:
    assert learnt(0.5).threshold(0.3) > learnt(1.0).threshold(0.3)
    assert learnt(0.5).threshold(0.6) == 1.0


def test_a_threshold_grows_with_what_is_asked() -> None:
    confidence = learnt(1.0)
    thresholds = [confidence.threshold(n / STEPS) for n in range(STEPS + 1)]
    assert thresholds == sorted(thresholds)


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_certainties_are_counted_as_well(probability: float) -> None:
    confidence = Confidence()
    for _ in range(300):
        confidence.observe(probability, accepted=False)
    assert confidence.threshold(0.5) >= 0.5
    assert confidence.threshold(0.97) == 1.0
