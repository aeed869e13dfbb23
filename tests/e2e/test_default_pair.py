"""The default pair in float32, started once: each feature whatever the draft does, a few greedy
answers, a few sampled ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.features import FEATURE_NAMES, SMOLLM2
from tests.e2e.test_feature_matrix import STOPS, Stage, check, stage_of
from tests.lossless import cases, check_direction, read_prompts
from tests.reference import Reference
from tests.sampling_bias import STANDARD_ERRORS, measure_running
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.models import catalogue
from uag_common.models.source import resolve

pytestmark = pytest.mark.real_model

GEMMA_ROWS = 262_144
QUICK = frozenset(
    {
        "chat of several turns",
        "control text",
        "high temperature",
        "all filters",
        "three choices",
        "presence penalty",
        "ends by itself",
        "stop sequence over tokens",
        "logprobs of a sample",
        "sampled JSON",
    }
)
"""What small models say least like real ones; the others are `full`."""
REAL_STOPS = {**STOPS, "JSON schema": pb.FINISH_REASON_EOS}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    target, draft = (resolve(c) for c in (catalogue.DEFAULT_TARGET, catalogue.DEFAULT_DRAFT))
    with stage_of(target, draft, GEMMA_ROWS, SMOLLM2) as stage:
        yield stage


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(resolve(catalogue.DEFAULT_TARGET))


@pytest.mark.parametrize(
    "feature",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in FEATURE_NAMES],
)
def test_the_reply_is_the_same_whatever_the_draft_does(stage: Stage, feature: str) -> None:
    check(stage, feature, REAL_STOPS.get(feature))


def test_drafts_were_proposed_accepted_rejected_and_died(stage: Stage) -> None:
    """Without these the comparisons above prove nothing."""
    print(stage.seen)
    assert stage.seen.features >= QUICK
    assert stage.seen.proven


def test_ids_are_those_of_the_target_alone(
    stage: Stage, reference: Reference, shared_prompts: Path
) -> None:
    stage.relay.servicer.dies_in = None
    asked = list(cases(read_prompts(shared_prompts)[:2], reference, new_tokens=20))
    tally = check_direction(stage.services, reference, asked, "float32")
    print(tally)
    assert tally.failed == 0
    assert tally.proven


def test_samples_are_drawn_from_the_targets_own_distribution(
    stage: Stage, reference: Reference
) -> None:
    stage.relay.servicer.dies_in = None
    bias = measure_running(stage.services, reference, positions=128)
    print(bias)
    assert bias.proven
    assert abs(bias.mean) <= STANDARD_ERRORS * bias.standard_error < bias.control
