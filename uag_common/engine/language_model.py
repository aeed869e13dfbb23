"""A language model of transformers as `uag_common.model` wants it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from uag_common.constraint.matcher import Grammars
from uag_common.decoding import Choice, Decoding
from uag_common.engine.choose import Chooser, NoNumbersError
from uag_common.engine.contexts import Contexts
from uag_common.engine.logits import TensorLogits, tensor_logits
from uag_common.engine.logprobs import with_logprobs
from uag_common.engine.noise import TokenNoise
from uag_common.errors import StartError
from uag_common.kv.pool import BlockPool
from uag_common.model import (
    Logits,
    ModelDescription,
    Part,
    TokenizerFile,
    TokenSequence,
    run_alone,
)
from uag_common.tokenizer.token_table import TokenTable


class LanguageModel:
    """Contexts, description, tokenizer files and token table of a loaded model. Tokens are chosen
    on `device`, where the logits are."""

    def __init__(
        self,
        contexts: Contexts,
        device: torch.device,
        description: ModelDescription,
        tokenizer_files: tuple[TokenizerFile, ...],
        table: TokenTable,
    ) -> None:
        self._contexts = contexts
        self.description = description
        self.tokenizer_files = tokenizer_files
        self._table = table
        self._noise = TokenNoise(table, device)
        self._grammars = Grammars(table.pieces, table.eos_ids, len(table.pieces))

    @property
    def blocks(self) -> BlockPool:
        return self._contexts.blocks

    @property
    def most_parts(self) -> int:
        return self._contexts.most_parts

    def new_sequence(self) -> TokenSequence:
        return self._contexts.new_sequence()

    def run(self, parts: Sequence[Part]) -> Sequence[TensorLogits]:
        return self._contexts.run(parts)

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
            before = chooser.choose(run_alone(self, sequence, 1), 0, sequence.ids, 2)
            sequence.truncate(1)
            sequence.extend([first])
            again = chooser.choose(run_alone(self, sequence, 1), 0, sequence.ids, 2)
        except NoNumbersError as error:
            raise StartError(
                "its weights give no numbers in a test step; fetch it again"
            ) from error
        finally:
            sequence.drop_cache()
        if again != before:
            raise StartError("it answers otherwise after a rollback in a test step")
