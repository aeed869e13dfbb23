"""Steps by torch.compile give what they give without, and none is compiled while requests run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from torch._dynamo.utils import counters
from transformers import (
    MambaConfig,
    MambaForCausalLM,
    PreTrainedModel,
)

from draft_service.settings import DraftSettings
from tests.engine.networks import (
    KINDS,
    VOCABULARY,
    contexts,
    fresh_logits,
    full,
    network,
    one_layer,
)
from tests.engine.walk import Walk
from uag_common.errors import StartError

STEPS = 60
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")


def graphs() -> int:
    return int(counters["stats"]["unique_graphs"])


@pytest.mark.parametrize(
    "kind", [one_layer, *(pytest.param(kind, marks=pytest.mark.full) for kind in KINDS)]
)
def test_compiled_steps_give_what_they_give_without(kind: Callable[[], PreTrainedModel]) -> None:
    whole, before = network(kind), graphs()
    compiled = contexts(whole, compiled=True)
    made = graphs()
    assert made > before
    walk = Walk(whole, compiled, fresh_logits, seed=1)
    walk.go(STEPS)
    assert walk.compared > STEPS
    assert graphs() == made


def test_a_machine_without_a_compiler_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (None, str(tmp_path / "none")))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(StartError, match=r"COMPILE=true: .* compiler"):
        contexts(network(full), compiled=True)


def test_what_cannot_be_packed_is_not_compiled() -> None:
    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1)
    with pytest.raises(StartError, match="cannot be packed, so COMPILE=true cannot be had"):
        contexts(network(lambda: MambaForCausalLM(config)), compiled=True)


def test_weights_that_lie_in_parts_are_not_compiled() -> None:
    with pytest.raises(StartError, match=r"COMPILE=true cannot be had .* UAG_DRAFT_DEVICE=offload"):
        DraftSettings(model="x", compile=True, device="offload")
    with pytest.raises(StartError, match=r"COMPILE=true cannot .* UAG_DRAFT_TENSOR_PARALLEL=2"):
        DraftSettings(model="x", compile=True, tensor_parallel=2)
