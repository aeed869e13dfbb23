"""Attention over many contexts in one row of tokens: each sees its own cache and nothing else.

transformers calls `packed_attention` in each layer of a model whose attention implementation is
`PACKED`. What the pass is about reaches it by a context variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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
        """Query [1, heads, tokens, size], key and value [1, kv heads, tokens, size], to
        [1, tokens, heads, value size]."""


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
    return _PASS.get().attend(layer, query, key, value, scale, softcap)


def _attend_in_compiled_pass(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    layer: int,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    # A graph is compiled for the order in memory that it was told of.
    return _attend_in_pass(query, key, value, layer, scale, softcap).contiguous()


_opaque = torch.library.custom_op(
    "uag::packed_attention", _attend_in_compiled_pass, mutates_args=()
)
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


@dataclass(frozen=True, slots=True)
class _View:
    """What the new tokens of a segment, `start` to `end` of a pass, see under a window; `mask` as
    `_attend` has it."""

    start: int
    end: int
    seen: Sequence[Run]
    mask: torch.Tensor | None


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
        self._tokens = len(self._slots)
        # What is the same for all layers with a window is made once.
        self._views: dict[_Alike, Sequence[_View]] = {}

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        self._write(layer, key, value)
        _, heads, tokens, _ = query.shape
        shared = heads // key.shape[1]
        views = self._seen_by((self._windows[layer], shared, query.dtype, query.device))
        if len(views) == 1 and views[0].end == tokens:
            return self._of_view(views[0], layer, query, scale, softcap)
        out = query.new_zeros(1, tokens, heads, value.shape[-1])
        for view in views:
            some = query[:, :, view.start : view.end]
            out[:, view.start : view.end] = self._of_view(view, layer, some, scale, softcap)
        return out

    def _write(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> None:
        slots = self._slots
        if slots.device != key.device:
            slots = slots.to(key.device, non_blocking=True)
        if key.shape[2] > self._tokens:
            key, value = key[:, :, : self._tokens], value[:, :, : self._tokens]
        self._store.write(layer, slots, key, value)

    def _of_view(
        self,
        view: _View,
        layer: int,
        query: torch.Tensor,
        scale: float,
        softcap: float | None,
    ) -> torch.Tensor:
        keys, values = self._store.read(layer, view.seen)
        return _attend(query, keys, values, view.mask, scale, softcap).transpose(1, 2)

    def _seen_by(self, alike: _Alike) -> Sequence[_View]:
        views = self._views.get(alike)
        if views is None:
            window, shared, dtype, device = alike
            views = tuple(
                _View(
                    start,
                    start + len(segment.ids),
                    _seen(segment, window),
                    _mask(segment, window, shared, dtype, device),
                )
                for start, segment in _starts(self._pack.segments)
            )
            self._views[alike] = views
        return views


_Alike = tuple[int | None, int, torch.dtype, torch.device]
"""Layers that see the same: by their window, heads that share keys, number type and device."""


def _starts(segments: Sequence[Segment]) -> list[tuple[int, Segment]]:
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


def _mask(
    segment: Segment, window: int | None, shared: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor | None:
    """Which seen tokens each new one sees: 0 or -inf, [shared * new, seen]; None: all."""
    if len(segment.ids) == 1:
        return None
    first = _first_seen(segment, window)
    new = torch.arange(segment.cached, segment.length, device=device)[:, None]
    seen = torch.arange(first, segment.length, device=device)
    sees = seen <= new
    if window is not None:
        sees &= seen > new - window
    return added(sees, dtype).repeat(shared, 1)


def added(sees: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask of truth values as what is added to logits: 0 or -inf."""
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill_(~sees, -torch.inf)


def _attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    softcap: float | None,
) -> torch.Tensor:
    """Query [1, heads, new, size], keys and values [1, kv heads, seen, size], to
    [1, heads, new, size]. The mask is added to the logits: [heads / kv heads * new, seen]."""
    _, heads, new, _ = query.shape
    kv_heads = keys.shape[1]
    # The heads that share keys become rows: neither a copy of the keys nor a slower kernel.
    rows = query.reshape(1, kv_heads, heads // kv_heads * new, -1)
    if softcap is None:
        out = functional.scaled_dot_product_attention(rows, keys, values, mask, scale=scale)
    else:
        out = _capped(rows, keys, values, mask, scale, softcap)
    return out.reshape(1, heads, new, -1)


def _capped(
    rows: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
    softcap: float,
) -> torch.Tensor:
    """With the logits of the attention kept within a cap (Gemma 2, arXiv 2408.00118)."""
    logits = (rows @ keys.transpose(2, 3)) * scale
    logits = (logits / softcap).tanh() * softcap
    if mask is not None:
        logits = logits + mask
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
        _, heads, tokens, size = key.shape
        shape = LayerShape(heads, size, value.shape[-1], key.dtype, key.device)
        self._found.append((layer, shape))
        causal = torch.ones(tokens, tokens, dtype=torch.bool, device=key.device).tril()
        mask = added(causal, query.dtype).repeat(query.shape[1] // heads, 1)
        return _attend(query, key, value, mask, scale, softcap).transpose(1, 2)
