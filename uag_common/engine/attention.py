"""Attention over many contexts in one row of tokens: each sees its own cache and nothing else.

transformers calls `packed_attention` in each layer of a model whose attention implementation is
`PACKED`. What the pass is about reaches it by a context variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import torch
from torch.nn import functional
from transformers import AttentionInterface

from uag_common.engine.kv_store import KvStore, LayerShape
from uag_common.engine.pack import Pack, Segment
from uag_common.kv.table import Run

PACKED = "uag_packed"
"""No mask function is registered under the name, so the models build no masks."""


class Attending(Protocol):
    """What a pass does in a layer."""

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        """Query [heads, tokens, size], key and value [kv heads, tokens, size], to
        [tokens, heads, value size]."""


_PASS: ContextVar[Attending] = ContextVar("the pass that runs")


@contextmanager
def running(attending: Attending) -> Iterator[None]:
    """The pass that forwards within the block are about."""
    token = _PASS.set(attending)
    try:
        yield
    finally:
        _PASS.reset(token)


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    position_bias: torch.Tensor | None = None,
    **others: Any,  # noqa: ARG001 - dropout, windows by name: not all models tell them
) -> tuple[torch.Tensor, None]:
    """As transformers' attention functions: query [1, heads, tokens, size], key and value
    [1, kv heads, tokens, size] to [1, tokens, heads, value size]."""
    if attention_mask is not None or s_aux is not None or position_bias is not None:
        raise NotImplementedError("masks, sinks and biases of a model's own are not packed")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer: Any = module.layer_idx
    attend = _opaque if torch.compiler.is_compiling() else _attend_in_pass
    return attend(query, key, value, layer, scale, softcap), None


def _attend_in_pass(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    layer: int,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    return _PASS.get().attend(layer, query[0], key[0], value[0], scale, softcap)[None]


_opaque = torch.library.custom_op("uag::packed_attention", _attend_in_pass, mutates_args=())
"""What a compiler leaves as it is: no graph knows what a pass is about."""


@_opaque.register_fake
def _shape_of_attention(
    query: torch.Tensor,
    key: torch.Tensor,  # noqa: ARG001
    value: torch.Tensor,
    layer: int,  # noqa: ARG001
    scale: float,  # noqa: ARG001
    softcap: float | None,  # noqa: ARG001
) -> torch.Tensor:
    return query.new_empty(1, query.shape[2], query.shape[1], value.shape[-1])


AttentionInterface.register(PACKED, packed_attention)


class PackedAttention:
    """The pass over a pack: writes the new tokens' keys and values, then attends segment by
    segment. `windows` has a layer's window, None: all tokens."""

    def __init__(
        self, pack: Pack, store: KvStore, windows: Sequence[int | None], device: torch.device
    ) -> None:
        self._pack = pack
        self._store = store
        self._windows = windows
        self._slots = torch.tensor(pack.slots(), device=device)
        self._views = _views(pack.segments)
        self._masks: dict[tuple[int, int | None], torch.Tensor | None] = {}

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        tokens, window = len(self._slots), self._windows[layer]
        slots = self._slots.to(key.device, non_blocking=True)
        self._store.write(
            layer, slots, key[:, :tokens].transpose(0, 1), value[:, :tokens].transpose(0, 1)
        )
        out = query.new_zeros(query.shape[1], query.shape[0], value.shape[-1])
        for index, (start, segment) in enumerate(self._views):
            end = start + len(segment.ids)
            seen = _seen(segment, window)
            keys, values = self._store.read(layer, seen)
            mask = self._mask(index, segment, window, query.device)
            part = _attend(query[:, start:end], keys, values, mask, scale, softcap)
            out[start:end] = part.transpose(0, 1)
        return out

    def _mask(
        self, index: int, segment: Segment, window: int | None, device: torch.device
    ) -> torch.Tensor | None:
        """Made once for all layers with that window."""
        key = (index, window)
        if key not in self._masks:
            self._masks[key] = _mask(segment, window, device)
        return self._masks[key]


def _views(segments: Sequence[Segment]) -> list[tuple[int, Segment]]:
    starts, start = [], 0
    for segment in segments:
        starts.append((start, segment))
        start += len(segment.ids)
    return starts


def _first_seen(segment: Segment, window: int | None) -> int:
    """The first token of the context that the first new one sees."""
    return 0 if window is None else max(0, segment.cached + 1 - window)


def _seen(segment: Segment, window: int | None) -> Sequence[Run]:
    """The slots from the first seen token on."""
    skip = _first_seen(segment, window)
    if not skip:
        return segment.runs
    seen = []
    for first, count in segment.runs:
        if skip < count:
            seen.append(Run(first + skip, count - skip))
        skip = max(0, skip - count)
    return seen


def _mask(segment: Segment, window: int | None, device: torch.device) -> torch.Tensor | None:
    """Which seen tokens each new one sees, bool [new, seen]; None: all."""
    if len(segment.ids) == 1:
        return None
    first = _first_seen(segment, window)
    new = torch.arange(segment.cached, segment.length, device=device)[:, None]
    seen = torch.arange(first, segment.length, device=device)
    mask = seen <= new
    return mask if window is None else mask & (seen > new - window)


def _attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Query [heads, new, size], keys and values [seen, kv heads, size], to [heads, new, size]."""
    heads, new, _ = query.shape
    kv_heads = keys.shape[1]
    shared = heads // kv_heads
    # The heads that share keys become rows: neither a copy of the keys nor a slower kernel.
    rows = query.reshape(kv_heads, shared * new, -1)
    if mask is not None and shared > 1:
        mask = mask.repeat(shared, 1)
    keys, values = keys.transpose(0, 1), values.transpose(0, 1)
    if softcap is None:
        out = functional.scaled_dot_product_attention(
            rows[None], keys[None], values[None], mask, scale=scale
        )[0]
    else:
        out = _capped(rows, keys, values, mask, scale, softcap)
    return out.reshape(heads, new, -1)


def _capped(
    rows: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    softcap: float,
) -> torch.Tensor:
    """With the logits of the attention kept within a cap (Gemma 2, arXiv 2408.00118)."""
    logits = (rows @ keys.transpose(1, 2)) * scale
    logits = (logits / softcap).tanh() * softcap
    if mask is not None:
        logits = logits.masked_fill(~mask, -torch.inf)
    return logits.softmax(-1, dtype=torch.float32).to(values.dtype) @ values


class ShapesOfLayers:
    """A pass over one context without a cache that notes what each layer would keep of a token."""

    def __init__(self) -> None:
        self._found: list[tuple[int, LayerShape]] = []

    def shapes(self) -> tuple[LayerShape, ...]:
        """In the order of the layers. Raises ValueError if they are not numbered from 0 on."""
        numbers = [layer for layer, _ in self._found]
        if numbers != list(range(len(numbers))):
            raise ValueError(f"layers are numbered {numbers}")
        return tuple(shape for _, shape in self._found)

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        heads, tokens, size = key.shape
        shape = LayerShape(heads, size, value.shape[-1], key.dtype, key.device)
        self._found.append((layer, shape))
        causal = torch.ones(tokens, tokens, dtype=torch.bool, device=key.device).tril()
        keys, values = key.transpose(0, 1), value.transpose(0, 1)
        return _attend(query, keys, values, causal, scale, softcap).transpose(0, 1)
