"""What is told of a choice: log-probabilities by the logits that it was made from."""

from __future__ import annotations

import math

import torch

from uag_common.decoding import Choice, TokenLogprob


def with_logprobs(token_id: int, logits: torch.Tensor, top: int) -> Choice:
    """The choice of a token from `logits`, [vocabulary], with the `top` most probable tokens: the
    best first, the lowest id first on an exact tie, and none that is impossible."""
    best = _best_ids(logits, top) if top else []
    logprob, *others = logits.log_softmax(-1)[[token_id, *best]].tolist()
    told = (TokenLogprob(*pair) for pair in zip(best, others, strict=True))
    return Choice(token_id, logprob, tuple(told))


def _best_ids(logits: torch.Tensor, count: int) -> list[int]:
    # topk takes any of equal values; all that are as good as its last one come into question.
    least = logits.topk(min(count, len(logits))).values[-1]
    ids = ((logits >= least) & (logits != -math.inf)).nonzero()[:, 0]
    order = logits[ids].argsort(descending=True, stable=True)
    best: list[int] = ids[order][:count].tolist()
    return best
