"""A causal language model of transformers as `uag_common.model` wants it, one session a forward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from transformers import DynamicCache, PreTrainedModel

from uag_common.constraint.matcher import Grammars
from uag_common.decoding import Choice, Decoding
from uag_common.engine.choose import Chooser, NoNumbersError
from uag_common.engine.logits import TensorLogits, tensor_logits
from uag_common.engine.logprobs import with_logprobs
from uag_common.engine.noise import TokenNoise
from uag_common.errors import StartError
from uag_common.model import Logits, ModelDescription, TokenizerFile
from uag_common.tokenizer.token_table import TokenTable


class CausalSequence:
    """A context and its KV cache. Tokens past the cache are run by the next `forward`."""

    def __init__(self, network: PreTrainedModel) -> None:
        self._network = network
        self._ids: list[int] = []
        self._cache = DynamicCache()
        self._cached = 0

    @property
    def ids(self) -> Sequence[int]:
        return self._ids

    @property
    def cache_bytes(self) -> int:
        # Whole storages: what was cut off takes memory until the next forward.
        pairs = self._keys_and_values()
        return sum(tensor.untyped_storage().nbytes() for pair in pairs for tensor in pair)

    def truncate(self, length: int) -> None:
        del self._ids[length:]
        self._uncache(length)

    def extend(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    @torch.inference_mode()
    def forward(self, rows: int) -> TensorLogits:
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
        return TensorLogits(output.logits[0])

    @torch.inference_mode()
    def fork(self, length: int) -> CausalSequence:
        other = CausalSequence(self._network)
        other._ids = self._ids[:length]
        other._cached = min(self._cached, length)
        if other._cached:
            cut = slice(other._cached)
            # A new cache copies what it is given.
            other._cache = DynamicCache(
                [
                    (keys[..., cut, :], values[..., cut, :])
                    for keys, values in self._keys_and_values()
                ]
            )
        return other

    def _uncache(self, length: int) -> None:
        """Cuts the cache to `length` tokens if it holds more."""
        if self._cached > length:
            # Without a config the cache keeps all tokens of sliding layers too, so any cut is
            # right; the masks see to the windows. `crop` takes the negative number to remove.
            self._cache.crop(length - self._cached)
            self._cached = length

    def _keys_and_values(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Of each layer, [1, heads, cached, size of a head]."""
        for layer in self._cache.layers:
            yield layer.keys, layer.values


class CausalModel:
    """Weights, description, tokenizer files and token table of a loaded model."""

    def __init__(
        self,
        network: PreTrainedModel,
        description: ModelDescription,
        tokenizer_files: tuple[TokenizerFile, ...],
        table: TokenTable,
    ) -> None:
        self._network = network
        self.description = description
        self.tokenizer_files = tokenizer_files
        self._table = table
        self._noise = TokenNoise(table, network.device)
        self._grammars = Grammars(table.pieces, table.eos_ids, len(table.pieces))

    def new_sequence(self) -> CausalSequence:
        return CausalSequence(self._network)

    def new_chooser(self, decoding: Decoding, answer_start: int) -> Chooser:
        constraint = decoding.constraint
        matcher = None if constraint is None else self._grammars.matcher(constraint)
        return Chooser(decoding, answer_start, self._table.pieces, self._noise, matcher)

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> list[Choice]:
        rows = tensor_logits(logits).tensor
        return [with_logprobs(token_id, rows[at], top) for at, token_id in enumerate(ids)]

    def test_step(self) -> None:
        """Runs two tokens, goes back by one, runs it again: raises what a session would meet."""
        sequence, chooser = self.new_sequence(), self.new_chooser(Decoding(), 0)
        first = self.description.roles.eos_ids[0]
        sequence.extend([first, first])
        try:
            before = chooser.choose(sequence.forward(1), 0, sequence.ids, 2)
            sequence.truncate(1)
            sequence.extend([first])
            again = chooser.choose(sequence.forward(1), 0, sequence.ids, 2)
        except NoNumbersError as error:
            raise StartError(
                "its weights give no numbers in a test step; fetch it again"
            ) from error
        if again != before:
            raise StartError("it answers otherwise after a rollback in a test step")
