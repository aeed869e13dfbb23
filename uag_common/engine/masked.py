"""Contexts of a masked language model, which fills a mask behind the text.

It sees both sides and keeps nothing: each token is a whole pass over the last tokens of the
context. So it can draft but not verify. Knows no text: which pieces may come is told by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedModel

from uag_common.engine.logits import LogitsOfPass, TensorLogits
from uag_common.engine.mask_vocabulary import MaskVocabulary
from uag_common.engine.rope import UNBOUNDED
from uag_common.engine.weights import home
from uag_common.errors import StartError
from uag_common.kv.pool import BlockPool
from uag_common.model import Part, Rollback

MOST_WINDOW = 128
"""Tokens of the context that are looked at: more cost more in each pass, and help little."""
MOST_PARTS = 32


class MaskedSequence:
    """`uag_common.model.TokenSequence` without a cache: all of it counts as cached, as none of it
    must run before the next token can be asked for."""

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self._ids = [*ids]

    @property
    def ids(self) -> Sequence[int]:
        return self._ids

    @property
    def cached(self) -> int:
        return len(self._ids)

    @property
    def cache_bytes(self) -> int:
        return 0

    def truncate(self, length: int) -> None:
        del self._ids[length:]

    def extend(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    def drop_cache(self) -> None:
        """There is none."""

    def reach(self, length: int) -> int:
        return length

    def pending(self, rows: int) -> int:
        if rows != 1 or not self._ids:
            raise ValueError(f"{rows} rows asked of a mask after {len(self._ids)} tokens")
        return 1

    def blocks_for(self, tokens: int) -> int:  # noqa: ARG002 - it takes none for any
        return 0

    def fork(self, length: int) -> MaskedSequence:
        return MaskedSequence(self._ids[:length])


class MaskedContexts:
    """Makes contexts, and fills the masks behind them. Raises StartError for a model that sees too
    few tokens."""

    rollback = Rollback.TRUNCATE
    most_parts = MOST_PARTS
    longest = UNBOUNDED

    def __init__(self, network: PreTrainedModel, vocabulary: MaskVocabulary) -> None:
        self._network = network
        self._vocabulary = vocabulary
        room = network.config.max_position_embeddings - len(vocabulary.around(()))
        self.window = min(MOST_WINDOW, room)
        if self.window < 1:
            raise StartError("it sees too few tokens to draft")
        size = network.get_input_embeddings().weight.shape[0]
        self._inside = _banned(vocabulary.never, size, home(network))
        self._at_start = _banned(vocabulary.never | vocabulary.continuations, size, home(network))
        # There is room for any number of contexts of any length.
        self.blocks = BlockPool(1, UNBOUNDED)

    def new_sequence(self) -> MaskedSequence:
        return MaskedSequence()

    def run(self, parts: Sequence[Part]) -> list[TensorLogits]:
        """As `uag_common.model.Model.run`."""
        windows = [_ids(part)[-self.window :] for part in parts]
        banned = torch.stack([self._banned_after(window) for window in windows])
        logits = self._at_masks(windows).float().masked_fill(banned, -torch.inf)
        whole = LogitsOfPass(logits)
        return [whole.share(row, 1) for row in range(len(parts))]

    def _banned_after(self, window: Sequence[int]) -> torch.Tensor:
        return self._inside if self._vocabulary.goes_on(window[-1]) else self._at_start

    @torch.inference_mode()
    def _at_masks(self, windows: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits at the mask behind each window, [windows, vocabulary]."""
        rows = [self._vocabulary.around(window) for window in windows]
        width = max(len(row) for row in rows)
        padding = self._network.config.pad_token_id or 0
        device = home(self._network)
        ids = [[*row, *[padding] * (width - len(row))] for row in rows]
        seen = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        masks = [self._vocabulary.mask_at(window) for window in windows]
        with _only(self._network, torch.tensor(masks, device=device)):
            output = self._network(
                input_ids=torch.tensor(ids, device=device),
                attention_mask=torch.tensor(seen, device=device),
            )
        logits: torch.Tensor = output.logits
        return logits[:, 0]


@contextmanager
def _only(network: PreTrainedModel, places: torch.Tensor) -> Iterator[None]:
    """Within the block the model's head sees one place of each row: what it makes of one takes as
    long as a layer, and the memory of a vocabulary."""

    def narrow(module: torch.nn.Module, given: Any, output: Any) -> Any:  # noqa: ARG001
        hidden = output.last_hidden_state
        output.last_hidden_state = hidden[torch.arange(len(hidden)), places][:, None]
        return output

    handle = network.base_model.register_forward_hook(narrow)
    try:
        yield
    finally:
        handle.remove()


def _banned(ids: frozenset[int], size: int, device: torch.device) -> torch.Tensor:
    """Whether each id is among them, bool [size]."""
    banned = torch.zeros(size, dtype=torch.bool, device=device)
    banned[sorted(ids)] = True
    return banned


def _ids(part: Part) -> Sequence[int]:
    if not isinstance(part.sequence, MaskedSequence):
        raise TypeError(f"{type(part.sequence).__name__} is no context of this model")
    part.sequence.pending(part.rows)
    return part.sequence.ids
