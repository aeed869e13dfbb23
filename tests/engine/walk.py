"""Contexts that grow, go back, fork and end at random, and are compared with the network alone."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from transformers import PreTrainedModel

from uag_common.engine.contexts import Contexts
from uag_common.model import Part, TokenSequence

TOLERANCE = 2e-4

Fresh = Callable[[PreTrainedModel, list[int], int], torch.Tensor]
"""The logits after each of the last rows of a context, by the network without a cache."""


class Walk:
    """`compared` rows were those of the network so far."""

    def __init__(
        self, network: PreTrainedModel, contexts: Contexts, fresh: Fresh, seed: int
    ) -> None:
        self._network = network
        self._contexts = contexts
        self._fresh = fresh
        self._dice = random.Random(seed)
        self._sequences = [contexts.new_sequence()]
        self._sequences[0].extend(self.ids(self._dice.randint(1, 30)))
        self.compared = 0

    def ids(self, count: int) -> list[int]:
        size = self._network.get_input_embeddings().weight.shape[0]
        return [self._dice.randrange(size) for _ in range(count)]

    def go(self, steps: int) -> None:
        """Raises AssertionError where a context gets other logits than alone, or holds blocks in
        the end."""
        for _ in range(steps):
            self._change()
            if self._dice.random() < 0.6:
                self._run()
        for sequence in self._sequences:
            sequence.drop_cache()
        assert self._contexts.blocks.used == 0

    def _change(self) -> None:
        sequence, dice = self._dice.choice(self._sequences), self._dice
        length = len(sequence.ids)
        match dice.choice(["grow"] * 4 + ["back"] * 3 + ["fork", "new", "drop", "end"]):
            case "grow":
                sequence.extend(self.ids(dice.randint(1, 7)))
            case "back":
                sequence.truncate(dice.randint(max(1, length - 8), length))
            case "fork":
                self._sequences.append(sequence.fork(dice.randint(1, length)))
            case "new":
                self._sequences.append(self._contexts.new_sequence())
                self._sequences[-1].extend(self.ids(dice.randint(1, 30)))
            case "drop":
                sequence.drop_cache()
            case "end" if len(self._sequences) > 1:
                self._sequences.remove(sequence)
                sequence.drop_cache()

    def _run(self) -> None:
        """Parts of some of them, each whole or the first tokens of it."""
        some = self._dice.sample(self._sequences, min(2, len(self._sequences)))
        parts = [self._part(sequence) for sequence in some]
        whole = [part.tokens == part.sequence.pending(part.rows) for part in parts]
        before = [part.sequence.cached for part in parts]
        for part, ends, cached, logits in zip(
            parts, whole, before, self._contexts.run(parts), strict=True
        ):
            assert logits.rows == (part.rows if ends else 0)
            assert part.sequence.cached <= cached + part.tokens
            if ends:
                assert part.sequence.cached == len(part.sequence.ids)
                self._compare(part.sequence, logits.tensor)

    def _compare(self, sequence: TokenSequence, logits: torch.Tensor) -> None:
        expected = self._fresh(self._network, list(sequence.ids), len(logits))
        assert torch.allclose(logits, expected, atol=TOLERANCE), (logits - expected).abs().max()
        assert torch.equal(logits.argmax(-1), expected.argmax(-1))
        self.compared += len(logits)

    def _part(self, sequence: TokenSequence) -> Part:
        length = len(sequence.ids)
        rows = self._dice.randint(1, min(length, 5))
        while sequence.reach(length - rows + 1) < length:
            rows -= 1
        pending = sequence.pending(rows)
        whole = self._dice.random() < 0.7
        return Part(sequence, pending if whole else self._dice.randint(1, pending), rows)
