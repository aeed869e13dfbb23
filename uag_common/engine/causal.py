"""A causal language model of transformers as `uag_common.model` wants it, one session a forward."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel

from uag_common.engine.choose import Rows, choose
from uag_common.errors import StartError
from uag_common.model import ModelDescription, TokenizerFile, TokenSequence


class CausalSequence:
    """A context and its KV cache. Tokens past the cache are run by the next `choose`."""

    def __init__(self, network: PreTrainedModel) -> None:
        self._network = network
        self._ids: list[int] = []
        self._cache = DynamicCache()
        self._cached = 0

    @property
    def ids(self) -> Sequence[int]:
        return self._ids

    def truncate(self, length: int) -> None:
        del self._ids[length:]
        self._uncache(length)

    def extend(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    def _uncache(self, length: int) -> None:
        """Cuts the cache to `length` tokens if it holds more."""
        if self._cached > length:
            # Without a config the cache keeps all tokens of sliding layers too, so any cut is
            # right; the masks see to the windows. `crop` takes the negative number to remove.
            self._cache.crop(length - self._cached)
            self._cached = length

    @torch.inference_mode()
    def choose(self, rows: int) -> Rows:
        if not 1 <= rows <= len(self._ids):
            raise ValueError(f"{rows} rows asked of a context of {len(self._ids)} tokens")
        self._uncache(len(self._ids) - rows)
        fresh = self._ids[self._cached :]
        try:
            output = self._network(
                input_ids=torch.tensor([fresh], device=self._network.device),
                cache=self._cache,
                use_cache=True,
                logits_to_keep=rows,
            )
        except BaseException:
            # Some layers may hold the new tokens and some not: start the cache anew.
            self._cache, self._cached = DynamicCache(), 0
            raise
        self._cached = len(self._ids)
        return choose(output.logits[0])


class CausalModel:
    """Weights, description and tokenizer files of a loaded model."""

    def __init__(
        self,
        network: PreTrainedModel,
        description: ModelDescription,
        tokenizer_files: tuple[TokenizerFile, ...],
    ) -> None:
        self._network = network
        self.description = description
        self.tokenizer_files = tokenizer_files

    def new_sequence(self) -> TokenSequence:
        return CausalSequence(self._network)

    def test_step(self) -> None:
        """Runs two tokens, goes back by one, runs it again: raises what a session would meet."""
        sequence = self.new_sequence()
        first = self.description.roles.eos_ids[0]
        sequence.extend([first, first])
        before = sequence.choose(1).ids
        sequence.truncate(1)
        sequence.extend([first])
        rows = sequence.choose(1)
        if not math.isfinite(rows.logprob(0)):
            raise StartError("its weights give no numbers in a test step; fetch it again")
        if rows.ids != before:
            raise StartError("it answers otherwise after a rollback in a test step")
