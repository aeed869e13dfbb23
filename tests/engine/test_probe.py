"""What a model can really do is found out at load, and what is wrong is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from transformers import PreTrainedModel

from tests.engine.networks import full, sliding
from tests.engine.recurrent_networks import (
    falcon,
    falcon_h1,
    jamba,
    lfm2,
    mamba,
    mamba2,
    qwen3_next,
    recurrent_gemma,
    rwkv,
    stablelm,
)
from uag_common.engine.contexts import Contexts
from uag_common.engine.logits import TensorLogits
from uag_common.engine.probe import Way, exact_contexts
from uag_common.engine.recurrent import OneByOne, new_memory
from uag_common.engine.replay import ReplayContexts, ReplayMemory
from uag_common.engine.rope import RopeRegimes
from uag_common.engine.solo import SoloContexts, SoloMemory, SoloSequence
from uag_common.errors import StartError
from uag_common.kv.pool import BlockPool
from uag_common.model import Part

Kind = Callable[[], PreTrainedModel]

CUT, REPLAYED, ONE_BY_ONE = "cut", "replayed", "replayed one by one"
TYPES = (torch.float32, torch.float16, torch.bfloat16)


def made(kind: Kind, dtype: torch.dtype = torch.float32, seed: int = 1) -> PreTrainedModel:
    torch.manual_seed(seed)
    return kind().eval().to(dtype)


def memory() -> SoloMemory:
    return SoloMemory(BlockPool(100, 4), RopeRegimes())


class Ways:
    """All ways of a network, best first; notes which were built."""

    def __init__(self, network: PreTrainedModel) -> None:
        self.built: list[str] = []
        self.contexts: list[Contexts] = []
        pool = BlockPool(100, 4)
        whole = ReplayMemory(lambda: new_memory(network), pool, 1)
        one = ReplayMemory(lambda: OneByOne(lambda: new_memory(network)), pool, 1)
        self.all = [
            self._way(CUT, lambda: SoloContexts(network, memory())),
            self._way(REPLAYED, lambda: ReplayContexts(whole)),
            self._way(ONE_BY_ONE, lambda: ReplayContexts(one)),
        ]

    def _way(self, name: str, build: Callable[[], Contexts]) -> Way:
        def noted() -> Contexts:
            self.built.append(name)
            self.contexts.append(build())
            return self.contexts[-1]

        return Way(name, noted)


@pytest.mark.parametrize(
    ("kind", "best"),
    [
        (full, CUT),
        (sliding, CUT),
        (stablelm, CUT),
        (falcon, CUT),
        (mamba2, REPLAYED),
        (falcon_h1, REPLAYED),
        (lfm2, REPLAYED),
        (qwen3_next, REPLAYED),
        (rwkv, REPLAYED),
        (mamba, ONE_BY_ONE),
        (jamba, ONE_BY_ONE),
    ],
)
def test_the_first_way_that_is_exact(kind: Kind, best: str) -> None:
    network = made(kind)
    ways = Ways(network)
    assert exact_contexts(network, ways.all) is ways.contexts[-1]
    assert ways.built[-1] == best
    for contexts in ways.contexts:
        assert contexts.blocks.used == 0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", [full, sliding, stablelm, falcon])
def test_rounding_is_no_fault(kind: Kind, dtype: torch.dtype) -> None:
    network = made(kind, dtype, seed=2)
    ways = Ways(network)
    exact_contexts(network, ways.all)
    assert ways.built == [CUT]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_model_that_hardly_looks_back_is_exact_too(dtype: torch.dtype) -> None:
    """As one without any training: its rounding is large beside what it sees of the context."""

    def absent() -> PreTrainedModel:
        network = full()
        for name, parameter in network.named_parameters():
            if "o_proj" in name:
                parameter.data *= 1e-5
        return network

    network = made(absent, dtype)
    ways = Ways(network)
    exact_contexts(network, ways.all)
    assert ways.built == [CUT]


def test_what_keeps_its_state_on_the_module_is_refused_by_name() -> None:
    network = made(recurrent_gemma)
    with pytest.raises(StartError, match="a RecurrentGemmaForCausalLM cannot be served") as refused:
        exact_contexts(network, Ways(network).all)
    for name in (CUT, REPLAYED, ONE_BY_ONE):
        assert f"{name}: " in str(refused.value)
    assert "contexts side by side: off by" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_weights_that_give_no_numbers_are_not_the_way_s_fault() -> None:
    network = made(full)
    network.get_input_embeddings().weight.data.fill_(torch.nan)
    with pytest.raises(StartError, match="no numbers in a test step"):
        exact_contexts(network, Ways(network).all)


def test_what_a_way_lacks_goes_through() -> None:
    def build() -> Contexts:
        raise StartError("no memory is left")

    network = made(full)
    with pytest.raises(StartError, match=r"^no memory is left$"):
        exact_contexts(network, [Way("broken", build), *Ways(network).all])


def test_the_attention_of_a_way_that_was_refused_is_put_back() -> None:
    network = made(full)
    before = network.config._attn_implementation
    ways = Ways(network)
    seen: list[str] = []

    def build() -> Contexts:
        network.set_attn_implementation("eager")
        return Stale(network, memory())

    def build_next() -> Contexts:
        seen.append(network.config._attn_implementation)
        return ways.all[0].build()

    exact_contexts(network, [Way("wrong", build), Way("right", build_next)])
    assert before != "eager"
    assert seen == [before]
    network.set_attn_implementation("eager")
    exact_contexts(network, ways.all)
    assert network.config._attn_implementation == "eager"


class _Wrong(SoloContexts):
    """Contexts with a fault; each kind says where it shows."""

    shows = ""


class _StaleSequence(SoloSequence):
    def truncate(self, length: int) -> None:
        del self._ids[length:]
        self._table.truncate(length)


class Stale(_Wrong):
    """What was rolled back stays in the cache."""

    shows = "a rollback"

    def new_sequence(self) -> SoloSequence:
        return _StaleSequence(self._memory)


class _ShallowSequence(SoloSequence):
    def _uncache(self, length: int) -> None:
        back = self.cached - length
        # The first cut is right, each later one lacks a token.
        if back > 0:
            self._cache.crop(-max(back - getattr(self, "cuts", 0), 1))
            self.cuts = 1
        self._table.truncate(length)


class Shallow(_Wrong):
    """A second rollback goes wrong."""

    shows = "a rollback further back"

    def new_sequence(self) -> SoloSequence:
        return _ShallowSequence(self._memory)


class _SharedSequence(SoloSequence):
    def fork(self, length: int) -> SoloSequence:
        other = super().fork(length)
        other._cache = self._cache
        return other


class Shared(_Wrong):
    """A fork and its source write into one cache."""

    shows = "contexts side by side"

    def new_sequence(self) -> SoloSequence:
        return _SharedSequence(self._memory)


class Shifted(_Wrong):
    """The logits are those of the rows before."""

    shows = "one token at a time"

    def run(self, parts: Sequence[Part]) -> list[TensorLogits]:
        return [TensorLogits.of(logits.tensor.roll(1, -1)) for logits in super().run(parts)]


class Blind(_Wrong):
    """Of several new tokens after cached ones, each sees the first ones alone."""

    shows = "several tokens at once"

    def run(self, parts: Sequence[Part]) -> list[TensorLogits]:
        several = [part for part in parts if part.sequence.cached and part.tokens > 2]
        logits = super().run(parts)
        if not several:
            return logits
        return [TensorLogits.of(each.tensor[:1].expand_as(each.tensor)) for each in logits]


class _ForgetfulSequence(SoloSequence):
    def prepare(self, part: Part) -> int:
        rows = super().prepare(part)
        # What an earlier part of the same context ran is lost.
        if self.cached == 4:
            self._cache.crop(-2)
        return rows


class Forgetful(_Wrong):
    """A context that runs in parts forgets the first of them."""

    shows = "a context in parts"

    def new_sequence(self) -> SoloSequence:
        return _ForgetfulSequence(self._memory)


WRONG = (Stale, Shallow, Shared, Shifted, Blind, Forgetful)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_way_is_refused_where_it_shows(wrong: type[_Wrong], dtype: torch.dtype) -> None:
    network = made(stablelm, dtype)
    with pytest.raises(StartError, match=rf"wrong: {wrong.shows}: off by \d"):
        exact_contexts(network, [Way("wrong", lambda: wrong(network, memory()))])
