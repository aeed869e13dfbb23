"""Chooses how the contexts of a loaded network are kept, and in how much memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

from uag_common.engine.attention import PACKED, ShapesOfLayers, running
from uag_common.engine.compiled import compile_steps
from uag_common.engine.contexts import Contexts
from uag_common.engine.independence import check_independence
from uag_common.engine.kv_store import KvStore, LayerShape
from uag_common.engine.pack_runner import PackRunner
from uag_common.engine.packed import PackedContexts, PackMemory
from uag_common.engine.parallel import ALONE, Leading, Team
from uag_common.engine.probe import Truth, Way, exact_contexts
from uag_common.engine.recurrent import NewMemory, OneByOne, memory_shape, new_memory
from uag_common.engine.replay import ReplayContexts, ReplayMemory, bytes_of_states
from uag_common.engine.rope import rope_regimes
from uag_common.engine.solo import SoloContexts, SoloMemory, layers_of_cache
from uag_common.engine.weights import home
from uag_common.errors import StartError
from uag_common.kv.budget import Budget
from uag_common.kv.pool import BlockPool
from uag_common.models.memory import available_bytes

BLOCK_TOKENS = 16
FIXED_ROWS = 16
"""Tokens of a pass in deterministic mode: up to so many cost hardly more than one."""
LEAST_CONTEXTS = 4
"""As many as the test steps at the start need."""
PACKED_LAYERS = frozenset({"full_attention", "sliding_attention"})


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """What the caches may take: of memory by `budget`, and no more than so many contexts of such a
    length could ever use. `kept_free`: bytes of each device that are not for them."""

    budget: Budget
    contexts: int
    context_length: int
    kept_free: int = 0

    def blocks(self, layers: Sequence[LayerShape], team: Team = ALONE) -> BlockPool:
        """As many as fit in each process. Raises StartError if that is none."""
        per_token = sum(layer.bytes for layer in layers)
        useful = self.contexts * (self.context_length + BLOCK_TOKENS)
        tokens = team.least(min(useful, self._tokens_that_fit(layers, team.size)))
        if tokens < BLOCK_TOKENS:
            raise StartError(
                f"no memory is left for its caches: a token takes {per_token} bytes in them; "
                "set KV_CACHE higher, or choose a smaller number type (DTYPE)"
            )
        everywhere = per_token * BLOCK_TOKENS * team.size
        return BlockPool(tokens // BLOCK_TOKENS, BLOCK_TOKENS, everywhere)

    def whole_contexts(self, context_bytes: int) -> BlockPool:
        """A block for each context, where all take the same memory however long they are."""
        count = self.budget.of(available_bytes()) // context_bytes
        most = max(LEAST_CONTEXTS, min(count, self.contexts))
        return BlockPool(most, self.context_length, context_bytes)

    def _tokens_that_fit(self, layers: Sequence[LayerShape], processes: int) -> int:
        """The fullest device decides."""
        per_token: Counter[torch.device] = Counter()
        for layer in layers:
            per_token[layer.device] += layer.bytes
        whole = sum(per_token.values())
        # Bytes that an operator names are those of all devices and processes together.
        return min(
            int(
                self.budget.of(max(0, _free_bytes(device, processes) - self.kept_free))
                * (needed / whole / processes if self.budget.bytes else 1)
            )
            // needed
            for device, needed in per_token.items()
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """What contexts are to be beside exact. `deterministic`: a context gets the same numbers
    whatever shares its passes. `compiled`: by torch.compile."""

    deterministic: bool = False
    compiled: bool = False

    def named(self, processes: int) -> tuple[str, ...]:
        """The settings that only packed contexts can follow."""
        return (
            *(("DETERMINISTIC=true",) if self.deterministic else ()),
            *(("COMPILE=true",) if self.compiled else ()),
            *((f"TENSOR_PARALLEL={processes}",) if processes > 1 else ()),
        )


def contexts_of(
    network: PreTrainedModel, limits: CacheLimits, asked: Asked = Asked(), team: Leading = ALONE
) -> Contexts:
    """The fastest way that is exact for the model, in all processes that share it, and as it is
    `asked` for. Raises StartError if there is none."""
    named = asked.named(team.size)
    if not named:
        return exact_contexts(network, list(_ways(network, limits)))
    if not is_packable(network):
        raise StartError(f"its attention cannot be packed, so {named[0]} cannot be had")
    rows = FIXED_ROWS if asked.deterministic else None
    name = "in passes of fixed size" if asked.deterministic else "packed"
    way = Way(name, lambda: _packed(network, limits, rows, team))
    contexts = exact_contexts(network, [way])
    if asked.compiled:
        compile_steps(network, contexts)
    if asked.deterministic:
        check_independence(contexts, network.get_input_embeddings().weight.shape[0])
    return contexts


def runner_of_follower(network: PreTrainedModel, limits: CacheLimits, team: Team) -> PackRunner:
    """What runs packs in a process that follows; does all that the others do until there is one."""
    Truth(network)
    runner, _ = _packing(network, limits, team)
    return runner


def _ways(network: PreTrainedModel, limits: CacheLimits) -> Iterator[Way]:
    """The fastest first."""
    if is_packable(network):
        yield Way("packed", lambda: _packed(network, limits, None, ALONE))
    yield Way("alone", lambda: _solo(network, limits))
    whole = partial(new_memory, network)
    yield Way("replayed", lambda: _replayed(whole, limits))
    yield Way("replayed token by token", lambda: _replayed(lambda: OneByOne(whole), limits))


def is_packable(network: PreTrainedModel) -> bool:
    """Whether attention of our own can take the place of all that the model has."""
    types, _ = get_layer_types_and_kwargs(network.config.get_text_config(decoder=True))
    return bool(
        network._supports_attention_backend
        and network._supports_logits_to_keep()
        and set(types) <= PACKED_LAYERS
    )


def _packed(
    network: PreTrainedModel, limits: CacheLimits, fixed_rows: int | None, team: Leading
) -> PackedContexts:
    runner, blocks = _packing(network, limits, team)
    memory = PackMemory(blocks, rope_regimes(network.config))
    return PackedContexts(team.everywhere(runner), memory, fixed_rows)


def _packing(
    network: PreTrainedModel, limits: CacheLimits, team: Team
) -> tuple[PackRunner, BlockPool]:
    """What runs packs in this process, and the blocks that each of them has room for."""
    network.set_attn_implementation(PACKED)
    layers = _layer_shapes(network)
    blocks = limits.blocks(layers, team)
    return PackRunner(network, KvStore(layers, blocks.tokens), _windows(network)), blocks


def _solo(network: PreTrainedModel, limits: CacheLimits) -> SoloContexts:
    blocks = limits.blocks(layers_of_cache(network))
    return SoloContexts(network, SoloMemory(blocks, rope_regimes(network.config)))


def _replayed(new: NewMemory, limits: CacheLimits) -> ReplayContexts:
    shape = memory_shape(new)
    if shape.layers:
        blocks = limits.blocks(shape.layers)
        states = -(-bytes_of_states(shape) // blocks.block_bytes)
        return ReplayContexts(ReplayMemory(new, blocks, states))
    return ReplayContexts(ReplayMemory(new, limits.whole_contexts(bytes_of_states(shape)), 0))


def _windows(network: PreTrainedModel) -> tuple[int | None, ...]:
    _, kwargs = get_layer_types_and_kwargs(network.config.get_text_config(decoder=True))
    return tuple(each.get("sliding_window") for each in kwargs)


@torch.inference_mode()
def _layer_shapes(network: PreTrainedModel) -> tuple[LayerShape, ...]:
    shapes = ShapesOfLayers()
    ids = torch.zeros(1, 2, dtype=torch.int64, device=home(network))
    with running(shapes):
        network(input_ids=ids, position_ids=ids, use_cache=False)
    return shapes.shapes()


def _free_bytes(device: torch.device, processes: int) -> int:
    """For each of so many processes, which have accelerators of their own and main memory in
    common."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free
    return available_bytes() // processes
