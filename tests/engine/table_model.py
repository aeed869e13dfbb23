"""A target that is a table: its logits depend on the last two tokens. What it would answer, and how
often, is enumerated here without the engine; choosing is the engine's own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from tests.engine.tables import CPU, token_table
from uag_common.decoding import Decoding, Sampling
from uag_common.engine.choose import Chooser
from uag_common.engine.logits import TensorLogits
from uag_common.engine.noise import TokenNoise

Answer = tuple[int, ...]

EOS = 0
TURN = 1
PROMPT = (4, 7)
"""Two tokens, as many as the logits depend on."""
PIECES = (None, None, b"a", b"a", b"b", b"ab", b" ", b"c", b"the", b"\xc3", b"\xa9", b" a")
"""An EOS, a control token, two tokens with the same bytes, and texts that begin alike."""


class TableModel:
    """`logits` is [vocabulary, vocabulary, vocabulary]: by the token before the last, by the last,
    of the next."""

    def __init__(self, pieces: Sequence[bytes | None], logits: torch.Tensor) -> None:
        self.pieces = tuple(pieces)
        self.logits = logits
        table = token_table(pieces, eos_ids=(EOS,), controls={EOS: "</s>", TURN: "<turn>"})
        self._noise = TokenNoise(table, CPU)

    def new_chooser(self, decoding: Decoding) -> Chooser:
        return Chooser(decoding, len(PROMPT), self.pieces, self._noise, None)

    def forward(self, ids: Sequence[int], rows: int) -> TensorLogits:
        """After each of the last `rows` of `ids`."""
        return TensorLogits.of(self.logits[ids[-rows - 1 : -1], ids[-rows:]])


def exact_answers(model: TableModel, sampling: Sampling, length: int) -> dict[Answer, float]:
    """The probability of each answer of at most `length` tokens, by the definitions of the
    parameters, in float64."""

    def continued(answer: Answer, probability: float) -> Iterator[tuple[Answer, float]]:
        if len(answer) == length or answer[-1:] == (EOS,):
            yield answer, probability
            return
        for token_id, share in enumerate(_next(model, sampling, answer)):
            if share:
                yield from continued((*answer, token_id), probability * share)

    return dict(continued((), 1.0))


def _next(model: TableModel, sampling: Sampling, answer: Answer) -> list[float]:
    context = (*PROMPT, *answer)
    logits = model.logits[context[-2], context[-1]].tolist()
    if sampling.repetition_penalty:
        for token_id in set(context):
            factor = sampling.repetition_penalty
            logits[token_id] *= factor if logits[token_id] < 0 else 1 / factor
    for token_id, count in Counter(answer).items():
        logits[token_id] -= count * sampling.frequency_penalty + sampling.presence_penalty
    shares = _normal([math.exp(logit / sampling.temperature) for logit in logits])
    return _min_p(_top_p(_top_k(shares, sampling.top_k), sampling.top_p), sampling.min_p)


# No two shares are equal, so each is kept by its value.


def _top_k(shares: list[float], k: int | None) -> list[float]:
    kept = sorted(shares, reverse=True)[:k]
    return _normal([share if share in kept else 0.0 for share in shares])


def _top_p(shares: list[float], p: float | None) -> list[float]:
    """Keeps the fewest of the most probable that have the probability together."""
    kept: list[float] = []
    for share in sorted(shares, reverse=True):
        if p is None or sum(kept) < p:
            kept.append(share)
    return _normal([share if share in kept else 0.0 for share in shares])


def _min_p(shares: list[float], p: float | None) -> list[float]:
    least = max(shares) * (p or 0.0)
    return _normal([share if share >= least else 0.0 for share in shares])


def _normal(shares: list[float]) -> list[float]:
    return [share / sum(shares) for share in shares]
