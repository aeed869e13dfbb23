"""Chooses how the contexts of a loaded network are kept, and in how much memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import get_layer_types_and_kwargs

from uag_common.engine.attention import PACKED, ShapesOfLayers, running
from uag_common.engine.contexts import Contexts
from uag_common.engine.independence import check_independence
from uag_common.engine.kv_store import KvStore, LayerShape
from uag_common.engine.pack_runner import PackRunner
from uag_common.engine.packed import PackedContexts, PackMemory
from uag_common.engine.rope import rope_regimes
from uag_common.errors import StartError
from uag_common.kv.budget import Budget
from uag_common.kv.pool import BlockPool
from uag_common.models.memory import available_bytes

BLOCK_TOKENS = 16
FIXED_ROWS = 16
"""Tokens of a pass in deterministic mode: up to so many cost hardly more than one."""
PACKED_LAYERS = frozenset({"full_attention", "sliding_attention"})


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """What the caches may take: of memory by `budget`, and no more than `tokens` that could ever be
    of use."""

    budget: Budget
    tokens: int

    def blocks(self, layers: Sequence[LayerShape]) -> BlockPool:
        """As many as fit. Raises StartError if that is none."""
        per_token = sum(layer.bytes for layer in layers)
        tokens = min(self.tokens, self._tokens_that_fit(layers))
        if tokens < BLOCK_TOKENS:
            raise StartError(
                f"no memory is left for its caches: a token takes {per_token} bytes in them; "
                "set KV_CACHE higher, or choose a smaller number type (DTYPE)"
            )
        return BlockPool(tokens // BLOCK_TOKENS, BLOCK_TOKENS, per_token * BLOCK_TOKENS)

    def _tokens_that_fit(self, layers: Sequence[LayerShape]) -> int:
        """The fullest device decides."""
        per_token: Counter[torch.device] = Counter()
        for layer in layers:
            per_token[layer.device] += layer.bytes
        whole = sum(per_token.values())
        # Bytes that an operator names are those of all devices together.
        return min(
            int(self.budget.of(_free_bytes(device)) * (needed / whole if self.budget.bytes else 1))
            // needed
            for device, needed in per_token.items()
        )


def contexts_of(
    network: PreTrainedModel, limits: CacheLimits, *, deterministic: bool = False
) -> Contexts:
    """The fastest way that is exact for the model. `deterministic`: and that gives a context the
    same numbers whatever shares its passes. Raises StartError if there is none."""
    contexts = _packed(network, limits, FIXED_ROWS if deterministic else None)
    if deterministic:
        check_independence(contexts, network.get_input_embeddings().weight.shape[0])
    return contexts


def is_packable(network: PreTrainedModel) -> bool:
    """Whether attention of our own can take the place of all that the model has."""
    types, _ = get_layer_types_and_kwargs(network.config.get_text_config(decoder=True))
    return bool(
        network._supports_attention_backend
        and network._supports_logits_to_keep()
        and set(types) <= PACKED_LAYERS
    )


def _packed(
    network: PreTrainedModel, limits: CacheLimits, fixed_rows: int | None
) -> PackedContexts:
    network.set_attn_implementation(PACKED)
    layers = _layer_shapes(network)
    blocks = limits.blocks(layers)
    runner = PackRunner(network, KvStore(layers, blocks.tokens), _windows(network))
    memory = PackMemory(blocks, rope_regimes(network.config))
    return PackedContexts(runner, memory, fixed_rows)


def _windows(network: PreTrainedModel) -> tuple[int | None, ...]:
    _, kwargs = get_layer_types_and_kwargs(network.config.get_text_config(decoder=True))
    return tuple(each.get("sliding_window") for each in kwargs)


@torch.inference_mode()
def _layer_shapes(network: PreTrainedModel) -> tuple[LayerShape, ...]:
    shapes = ShapesOfLayers()
    ids = torch.zeros(1, 2, dtype=torch.int64, device=network.device)
    with running(shapes):
        network(input_ids=ids, position_ids=ids, use_cache=False)
    return shapes.shapes()


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free
    return available_bytes()
