"""Finds out which way of keeping contexts is exact for a model, by trying.

What models tell of themselves is wrong for some. So random tokens run through each way, with
rollbacks, forks and neighbours, and what comes out is compared with the model's own forward pass
over the whole context, without any cache. Knows no way: each comes with its name and how to build
it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from uag_common.engine.contexts import Contexts
from uag_common.engine.forward import forward
from uag_common.errors import StartError, first_line
from uag_common.model import Part, TokenSequence
from uag_common.ranks.errors import RankLostError

log = logging.getLogger(__name__)

LEAST_INFLUENCE = 0.05
"""Of all that tells a row's logits apart. What no training has told to look back may look back
less, and would then be measured by its own rounding."""
_MAIN, _BRANCH, _OTHER = range(3)
_FORKED_AT, _OTHER_UNTIL = 6, 4
_OTHER_SHAPES = (5, 8, 12)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of keeping contexts; `name` is for people."""

    name: str
    build: Callable[[], Contexts]


class InexactError(Exception):
    """A way gives other logits than the model itself; says where."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Of errors, in units of what another beginning of the context would change. Below `floor` none
    counts, above `cap` none is rounding; between, they may be `growth` times what other shapes of a
    pass change by themselves: those of the model without any cache, and one token at a time. Of the
    rows that come out of one pass, that at `quantile` counts."""

    floor: float
    cap: float
    growth: float
    quantile: float


_TOLERANCES = {
    torch.float32: Tolerance(floor=1e-3, cap=1e-2, growth=10, quantile=1),
    # Experts are chosen by numbers that are rounded too, so single rows may be far off.
    torch.float16: Tolerance(floor=5e-2, cap=2e-1, growth=3, quantile=0.5),
    torch.bfloat16: Tolerance(floor=2e-1, cap=5e-1, growth=2, quantile=0.5),
}
"""SmolLM2 and Gemma 3 are off by up to 3e-5 in float32, by 0.09 to 0.21 in bfloat16 (by the kernels
of the processor), and by 0.6 to 9 with tokens in the cache that were rolled back."""


def exact_contexts(network: PreTrainedModel, ways: Sequence[Way]) -> Contexts:
    """Contexts of the first way that is exact, or StartError that tells what is wrong with each.
    A StartError of a way that is built goes through."""
    attention, truth, faults = network.config._attn_implementation, Truth(network), []
    for way in ways:
        try:
            contexts = _tried(way, truth)
            log.info("contexts of a %s run %s", type(network).__name__, way.name)
            return contexts
        except (StartError, RankLostError):
            raise
        except Exception as error:
            # What a model can do that a way is not made for has no end.
            told = str(error) if isinstance(error, InexactError) else first_line(error)
            fault = f"{way.name}: {told}"
            log.info("not for a %s: %s", type(network).__name__, fault)
            log.debug("the error was", exc_info=error)
            faults.append(fault)
        if network.config._attn_implementation != attention:
            network.set_attn_implementation(attention)
    raise StartError(
        f"a {type(network).__name__} cannot be served: what it keeps of a context can be neither "
        f"cut nor run again ({'; '.join(faults)}); choose another model"
    )


def _tried(way: Way, truth: Truth) -> Contexts:
    contexts = way.build()
    _Walk(contexts, truth).go()
    return contexts


class Truth:
    """Some contexts, and what the model itself says of them. Raises StartError if that is no
    numbers."""

    def __init__(self, network: PreTrainedModel) -> None:
        self.tolerance = _TOLERANCES.get(network.dtype, _TOLERANCES[torch.bfloat16])
        self.lines = _lines(network.get_input_embeddings().weight.shape[0])
        self._logits = [
            forward(network, line, len(line), use_cache=False).logits.float() for line in self.lines
        ]
        if not all(bool(logits.isfinite().all()) for logits in self._logits):
            raise StartError("its weights give no numbers in a test step; fetch it again")
        self._unit = self._influence()
        self.rounding = max(self._other_shape(network, length) for length in _OTHER_SHAPES)

    def _influence(self) -> float:
        """By how much the logits after a token change if those before it are others."""
        same = slice(_OTHER_UNTIL, len(self.lines[_OTHER]))
        logits, others = self._logits[_MAIN][same], self._logits[_OTHER][same]
        scale = (logits - logits.mean(-1, keepdim=True)).norm(dim=-1).median()
        influence = (others - logits).norm(dim=-1).median()
        return float(max(influence, LEAST_INFLUENCE * scale))

    def _other_shape(self, network: PreTrainedModel, length: int) -> float:
        """The error of the model itself over the first `length` tokens, without those after."""
        beginning = self.lines[_MAIN][:length]
        logits = forward(network, beginning, length // 2, use_cache=False).logits.float()
        return self.error(_MAIN, length, logits)

    def error(self, line: int, length: int, logits: torch.Tensor) -> float:
        """Of the logits after the last of the first `length` tokens of a line, [rows, vocabulary],
        in units of what other tokens before would change."""
        true = self._logits[line][length - len(logits) : length]
        errors = (logits - true).norm(dim=-1)
        return float(errors.quantile(self.tolerance.quantile)) / self._unit


def _lines(vocabulary: int) -> tuple[list[int], ...]:
    """`_BRANCH` begins as `_MAIN` does, `_OTHER` goes on as it does."""
    dice = random.Random(0)  # noqa: S311 - nothing is to be kept secret

    def ids(count: int) -> list[int]:
        return [dice.randrange(vocabulary) for _ in range(count)]

    main = ids(16)
    other = ids(_OTHER_UNTIL) + main[_OTHER_UNTIL:11]
    return main, main[:_FORKED_AT] + ids(6), other


class _Walk:
    """Through all that a session does with its context, in one way."""

    def __init__(self, contexts: Contexts, truth: Truth) -> None:
        self._contexts = contexts
        self._truth = truth
        self._allowed = truth.tolerance.cap

    def go(self) -> None:
        """Raises InexactError, and whatever the model raises."""
        sequences = [self._contexts.new_sequence() for _ in range(2)]
        try:
            self._grow(*sequences)
            self._roll_back(sequences[0])
            sequences.append(sequences[0].fork(_FORKED_AT))
            self._part_ways(*sequences)
        finally:
            for sequence in sequences:
                sequence.drop_cache()

    def _grow(self, first: TokenSequence, other: TokenSequence) -> None:
        beginning = self._logits(first, _MAIN, 8, rows=3)
        one_by_one = [self._logits(first, _MAIN, length, rows=1) for length in (9, 10)]
        tolerance, usual = self._truth.tolerance, self._error(_MAIN, 10, torch.cat(one_by_one))
        self._compare("one token at a time", usual)
        rounding = tolerance.growth * max(usual, self._truth.rounding)
        self._allowed = min(tolerance.cap, max(tolerance.floor, rounding))
        self._compare("a whole context", self._error(_MAIN, 8, beginning))
        self._check("several tokens at once", first, _MAIN, 16, rows=5)
        self._extend(other, _OTHER, 7)
        self._contexts.run((Part(other, 4, 1),))
        self._check("a context in parts", other, _OTHER, 7, rows=1)

    def _roll_back(self, first: TokenSequence) -> None:
        first.truncate(_FORKED_AT)
        self._check("a rollback", first, _BRANCH, 12, rows=4)
        first.truncate(_FORKED_AT - 2)
        self._check("a rollback further back", first, _MAIN, 9, rows=3)

    def _part_ways(self, first: TokenSequence, other: TokenSequence, fork: TokenSequence) -> None:
        lengths = ((first, _MAIN, 11), (other, _OTHER, 10), (fork, _BRANCH, 11))
        self._side_by_side(lengths, rows=2)
        # One new token each, after the others ran; one context goes back to where it was before.
        first.truncate(9)
        self._side_by_side(((first, _MAIN, 10), (other, _OTHER, 11), (fork, _BRANCH, 12)), rows=1)

    def _side_by_side(self, lengths: Sequence[tuple[TokenSequence, int, int]], rows: int) -> None:
        """Contexts, each with its line and the length to which it grows."""
        parts = []
        for sequence, line, length in lengths:
            self._extend(sequence, line, length)
            parts.append(Part(sequence, sequence.pending(rows), rows))
        most = self._contexts.most_parts
        groups = [parts[start : start + most] for start in range(0, len(parts), most)]
        logits = [each for group in groups for each in self._contexts.run(group)]
        for (_, line, length), each in zip(lengths, logits, strict=True):
            self._compare("contexts side by side", self._error(line, length, each.tensor))

    def _check(self, what: str, sequence: TokenSequence, line: int, length: int, rows: int) -> None:
        logits = self._logits(sequence, line, length, rows)
        self._compare(what, self._error(line, length, logits))

    def _logits(self, sequence: TokenSequence, line: int, length: int, rows: int) -> torch.Tensor:
        self._extend(sequence, line, length)
        (logits,) = self._contexts.run((Part(sequence, sequence.pending(rows), rows),))
        return logits.tensor

    def _extend(self, sequence: TokenSequence, line: int, length: int) -> None:
        """To the first `length` tokens of a line."""
        sequence.extend(self._truth.lines[line][len(sequence.ids) : length])

    def _error(self, line: int, length: int, logits: torch.Tensor) -> float:
        return self._truth.error(line, length, logits)

    def _compare(self, what: str, error: float) -> None:
        # No number is no small error.
        if not error <= self._allowed:
            raise InexactError(
                f"{what}: off by {error:.1e}, at most {self._allowed:.1e} is rounding"
            )
