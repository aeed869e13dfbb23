"""Runs packs on the model of this process. Keeps no context: a pack tells all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from uag_common.engine.attention import PackedAttention, running
from uag_common.engine.kv_store import KvStore
from uag_common.engine.pack import Pack
from uag_common.engine.weights import home


class PackRunner:
    """A model and its store. `windows` has the sliding window of each layer, None: all tokens."""

    def __init__(
        self, network: PreTrainedModel, store: KvStore, windows: Sequence[int | None]
    ) -> None:
        self._network = network
        self._store = store
        self._windows = windows

    @torch.inference_mode()
    def run(self, pack: Pack) -> torch.Tensor:
        """The logits after the tokens at the pack's rows, [rows, vocabulary]."""
        device = home(self._network)
        self._store.copy(pack.copies)
        with running(PackedAttention(pack, self._store, self._windows, device)):
            output = self._network(
                input_ids=torch.tensor([pack.ids()], device=device),
                position_ids=torch.tensor([pack.positions()], device=device),
                use_cache=False,
                logits_to_keep=torch.tensor(pack.rows, dtype=torch.int64, device=device),
            )
        logits: torch.Tensor = output.logits[0]
        return logits
