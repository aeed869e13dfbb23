"""How a token is chosen from logits. The one place: the target and the draft both choose here.

Knows one answer: its decoding, and where its next token stands. It must not know who asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from uag_common.decoding import Choice, Decoding, NoisePosition
from uag_common.engine.logits import Greatest, tensor_logits
from uag_common.engine.logprobs import with_logprobs
from uag_common.engine.noise import TokenNoise
from uag_common.engine.processors import ConstraintMask, Matcher, Processor, processors, warpers
from uag_common.errors import InternalError, InvalidRequestError, UagError
from uag_common.model import Logits

_NO_CONTEXT = torch.empty((1, 0), dtype=torch.int64)


class NoNumbersError(InternalError):
    """The model's logits are not numbers, so nothing can be chosen from them."""


class Chooser:
    """`uag_common.model.TokenChooser` over the engine's own logits."""

    def __init__(
        self,
        decoding: Decoding,
        answer_start: int,
        pieces: Sequence[bytes | None],
        noise: TokenNoise,
        matcher: Matcher | None,
    ) -> None:
        self._sampling = decoding.sampling
        self._top = decoding.top_logprobs
        self._pieces = pieces
        self._noise = noise
        self._matcher = matcher
        self._position = NoisePosition()
        self._processors = tuple(processors(decoding, answer_start, noise.device))
        mask = (ConstraintMask(matcher),) if matcher else ()
        self._filters: tuple[Processor, ...] = (*mask, *warpers(decoding.sampling))

    @torch.inference_mode()
    def choose(self, logits: Logits, row: int, ids: Sequence[int], length: int) -> Choice:
        """As the protocol has it. Raises NoNumbersError, and InvalidRequestError if the decoding
        leaves no token."""
        rows = tensor_logits(logits)
        if self._sampling.greedy and not self._processors and not self._filters:
            processed, chosen = rows.tensor[row], rows.greatest[row]
        else:
            processed = self._process(rows.tensor[row : row + 1], ids, length)[0]
            chosen = _greatest(processed) if self._sampling.greedy else self._draw(processed)
        if not math.isfinite(chosen.logit):
            raise _failure(rows.tensor[row], chosen.logit)
        if self._top is None:
            return Choice(chosen.id)
        return with_logprobs(chosen.id, processed, self._top)

    def advance(self, token_id: int) -> None:
        if self._matcher:
            self._matcher.advance(token_id)
        self._position = self._position.after(self._pieces[token_id])

    def move(self, position: NoisePosition) -> None:
        if self._matcher:
            raise ValueError("a chooser with a constraint cannot be moved")
        self._position = position

    def _process(self, logits: torch.Tensor, ids: Sequence[int], length: int) -> torch.Tensor:
        if self._processors:
            context = torch.tensor([ids[:length]], dtype=torch.int64, device=logits.device)
            for process in self._processors:
                logits = process(context, logits)
        for narrow in self._filters:
            logits = narrow(_NO_CONTEXT, logits)
        return logits

    def _draw(self, logits: torch.Tensor) -> Greatest:
        """The Gumbel-max trick: the greatest of logit + noise falls on each token with exactly the
        token's probability. Float64, as in float32 noise can be equal or infinite."""
        possible = logits != -math.inf
        few = 0 < int(possible.sum()) <= len(logits) // 2
        ids = possible.nonzero()[:, 0] if few else None
        noise = self._noise.gumbel(self._sampling.seed, self._sampling.choice, self._position, ids)
        found = _greatest(noise.add_(logits if ids is None else logits[ids]))
        return found if ids is None else Greatest(int(ids[found.id]), found.logit)


def _greatest(logits: torch.Tensor) -> Greatest:
    # torch.argmax gives the first of equal maxima, and takes NaN for the greatest.
    best = int(logits.argmax())
    return Greatest(best, float(logits[best]))


def _failure(raw: torch.Tensor, logit: float) -> UagError:
    """Why the greatest of a row's processed logits is not finite."""
    if not bool(raw.max().isfinite()):
        return NoNumbersError("the model gives no numbers: its weights or its number type are bad")
    if logit == -math.inf:
        return InvalidRequestError(
            "min_new_tokens", "together with the constraint and the biases, it leaves no token"
        )
    return InvalidRequestError("sampling", "its numbers are so large that logits overflow")
