"""Weights in the order of their products: the same products."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from tests.engine.networks import KINDS, SHAPE, VOCABULARY, network, one_layer
from tests.miniatures import miniature
from uag_common.engine import load
from uag_common.engine.network import load_network
from uag_common.engine.prepacked import ENOUGH, PrepackedLinear, prepack
from verify_service.settings import VerifySettings

TYPES = (torch.float32, torch.bfloat16)


class Doubled(nn.Linear):
    """Does more than its base."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(rows)


def linear(dtype: torch.dtype, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(96, 160, bias=bias, dtype=dtype).requires_grad_(requires_grad=False)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 4), (1, 11), (64,), (2, 3, 5), (0,), (1, 0)])
def test_products_are_those_of_the_plain_weight(
    dtype: torch.dtype, bias: bool, shape: tuple[int, ...]
) -> None:
    plain = linear(dtype, bias=bias)
    rows = torch.randn(*shape, 96).to(dtype)
    found, expected = PrepackedLinear(plain)(rows), plain(rows)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [1, 2])
def test_few_rows_are_rounded_as_several_are(dtype: torch.dtype, count: int) -> None:
    prepacked = PrepackedLinear(linear(dtype))
    rows = torch.randn(1, ENOUGH, 96).to(dtype)
    alone = prepacked(rows[:, :count])
    assert alone.shape == (1, count, 160)
    assert torch.equal(alone, prepacked(rows)[:, :count])


@pytest.mark.parametrize("dtype", TYPES)
def test_the_weight_can_still_be_read(dtype: torch.dtype) -> None:
    plain = linear(dtype)
    prepacked = PrepackedLinear(plain)
    assert torch.equal(prepacked.weight, plain.weight)
    assert (prepacked.in_features, prepacked.out_features) == (96, 160)


def prepacked_in(whole: PreTrainedModel) -> list[str]:
    return [name for name, child in whole.named_modules() if isinstance(child, PrepackedLinear)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_says_what_it_said(kind: Callable[[], PreTrainedModel]) -> None:
    whole = network(kind)
    ids = torch.arange(12)[None]
    with torch.inference_mode():
        before = whole(input_ids=ids).logits
        prepack(whole)
        after = whole(input_ids=ids).logits
    assert "lm_head" in prepacked_in(whole)
    assert whole.get_input_embeddings().weight.shape == (VOCABULARY, SHAPE["hidden_size"])
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)


def test_what_is_more_than_a_product_stays_as_it_is() -> None:
    whole = network(one_layer)
    layer = whole.base_model.layers[0]
    layer.mlp.up_proj.forward = layer.mlp.up_proj.forward
    layer.mlp.down_proj.register_forward_hook(lambda *_: None)
    layer.self_attn.q_proj.to(torch.float16)
    layer.self_attn.k_proj.to("meta")
    layer.self_attn.v_proj = Doubled(32, 16)
    prepack(whole)
    done = {name.rpartition(".")[2] for name in prepacked_in(whole)}
    assert done == {"o_proj", "gate_proj", "lm_head"}


def test_a_network_without_such_products_is_left_alone() -> None:
    whole = network(one_layer).to(torch.float16)
    before = [parameter.data_ptr() for parameter in whole.parameters()]
    assert prepack(whole) == ""
    assert [parameter.data_ptr() for parameter in whole.parameters()] == before


def test_where_there_are_no_such_products_all_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("needs another processor")

    whole = network(one_layer)
    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", refuse)
    assert "needs another processor" in prepack(whole)
    assert not prepacked_in(whole)
    assert whole(input_ids=torch.arange(5)[None]).logits.isfinite().all()


@pytest.mark.parametrize("wanted", [False, True])
def test_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wanted: bool) -> None:
    networks = list[PreTrainedModel]()

    def noted(*given: Any) -> PreTrainedModel:
        networks.append(load_network(*given))
        return networks[-1]

    monkeypatch.setattr(load, "load_network", noted)
    settings = VerifySettings(model="x", prepack=wanted)
    model = load.load_folder(miniature(tmp_path, "llama"), settings, torch.device("cpu"))
    assert bool(prepacked_in(networks[0])) is wanted
    fresh = load_network(tmp_path, settings, torch.device("cpu"), 1)
    assert model.description.parameter_count == fresh.num_parameters()
