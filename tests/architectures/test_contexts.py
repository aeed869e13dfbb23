"""The engine's contexts of each causal architecture, by the way that it takes for it: whatever is
mixed, cut and forked, the logits are those of the model alone."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import PreTrainedModel

from tests.architectures.architecture import Architecture
from tests.architectures.catalogue import CAUSAL, GPT_BIGCODE, MISTRAL, PHI_3
from tests.architectures.folders import model_folder
from tests.architectures.oracle import Oracle
from tests.engine.walk import Walk
from uag_common.engine.caches import CacheLimits, contexts_of
from uag_common.kv.budget import Budget

LIMITS = CacheLimits(Budget.parse("100MB"), contexts=32, context_length=256)
QUICK = (GPT_BIGCODE, MISTRAL, PHI_3)


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(each, id=each.name, marks=[] if each in QUICK else [pytest.mark.full])
        for each in CAUSAL
    ],
)
def test_a_walk_equals_the_model_alone(architecture: Architecture) -> None:
    oracle = Oracle(architecture, model_folder(architecture))
    network = oracle.prompts.network

    def alone(_: PreTrainedModel, ids: list[int], rows: int) -> torch.Tensor:
        return oracle.logits(ids, rows)

    walk = Walk(network, contexts_of(copy.deepcopy(network), LIMITS), alone, seed=1)
    walk.go(100)
    assert walk.compared > 40
