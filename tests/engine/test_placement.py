"""Weights that lie partly elsewhere give what they give in memory."""

from __future__ import annotations

import gc
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from tests.engine.networks import KINDS, experts, fresh_logits, full, network
from tests.engine.walk import Walk
from uag_common.engine import caches
from uag_common.engine.caches import CacheLimits, contexts_of
from uag_common.engine.kv_store import LayerShape
from uag_common.engine.network import load_network
from uag_common.engine.placement import choose_device
from uag_common.engine.weights import fetched_sizes, home
from uag_common.errors import StartError
from uag_common.kv.budget import Budget
from uag_common.weight_memory import WeightMemory
from verify_service.settings import VerifySettings

CPU = torch.device("cpu")
STEPS = 40
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="weights lie on accelerators")


def loaded(kind: Callable[[], PreTrainedModel], folder: Path, share: float) -> PreTrainedModel:
    """With main memory for that share of its weights."""
    whole = network(kind)
    whole.save_pretrained(folder)
    size = sum(p.numel() * p.element_size() for p in whole.parameters())
    memory = f"cpu={share * size / 1e6}MB"
    settings = VerifySettings(model=str(folder), device="offload", max_memory=memory)
    return load_network(folder, settings, choose_device(settings), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_on_disk_give_what_they_give_in_memory(
    kind: Callable[[], PreTrainedModel], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        offloaded = loaded(kind, tmp_path, 0.7)
    assert "(disk) and are fetched in each pass" in caplog.text
    count = len(list(offloaded.parameters()))
    assert 0 < len(list(fetched_sizes(offloaded))) < count
    assert home(offloaded) == CPU
    whole = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    contexts = contexts_of(offloaded, CacheLimits(Budget.parse("1GB"), 1, 4096))
    walk = Walk(whole, contexts, fresh_logits, seed=1)
    walk.go(STEPS)
    assert walk.compared > STEPS


def test_what_fits_lies_in_memory(tmp_path: Path) -> None:
    assert not list(fetched_sizes(loaded(full, tmp_path, 2.0)))


def test_what_had_to_be_written_anew_goes_with_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files keep each expert by itself, and the network has them all in one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    offloaded = loaded(experts, tmp_path / "model", 0.7)
    (written,) = tmp_path.glob("uag-weights-*")
    assert list(written.iterdir())
    del offloaded
    gc.collect()
    assert not written.exists()


def test_limits_without_a_place_for_the_rest_are_refused() -> None:
    settings = VerifySettings(model="x", device="cpu", max_memory="cpu=1GB")
    with pytest.raises(StartError, match="MAX_MEMORY is for UAG_VERIFY_DEVICE=spread and"):
        choose_device(settings)


def test_limits_of_a_device_that_is_not_there_are_refused(tmp_path: Path) -> None:
    network(full).save_pretrained(tmp_path)
    settings = VerifySettings(model=str(tmp_path), device="offload", max_memory="cuda:0=1GB")
    with pytest.raises(StartError, match="MAX_MEMORY names cuda:0, which is not there"):
        load_network(tmp_path, settings, CPU, 1)


def test_limits_by_device() -> None:
    limits = (("cuda:0", 20 * 10**9), ("cpu", 2**30))
    assert WeightMemory.parse("cuda:0=20GB cpu=1GiB") == WeightMemory(limits)
    assert WeightMemory.parse("") == WeightMemory()


@pytest.mark.parametrize("text", ["20GB", "cuda=20GB", "cpu=20", "0=20GB", "cpu=20GB,cuda:0=1GB"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(StartError, match=r"MAX_MEMORY=.*: must be a size for each device, as in"):
        VerifySettings(model="x", max_memory=text)


def test_room_for_what_is_fetched_is_not_for_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "available_bytes", lambda: 10_000_000)
    layer = LayerShape(1, 8, 8, torch.float32, CPU)
    limits = CacheLimits(Budget.parse("50%"), 10**6, 10**6, kept_free=4_000_000)
    assert limits.blocks([layer]).tokens == pytest.approx(3_000_000 / layer.bytes, rel=0.01)


def test_a_device_with_two_limits_is_refused() -> None:
    with pytest.raises(StartError, match="must name each device once"):
        VerifySettings(model="x", max_memory="cpu=1GB cpu=2GB")
