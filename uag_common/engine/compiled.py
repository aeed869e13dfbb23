"""Steps of a model by torch.compile: one graph for passes of one token, one for all others.

Attention stays as it is (`uag_common.engine.attention`), and so does the output layer, which is one
product. What is fused is what lies between: it pays for models of many small layers.
"""

from __future__ import annotations

import logging
import time

import torch
from transformers import PreTrainedModel

from uag_common.engine.contexts import Contexts
from uag_common.errors import StartError, first_line
from uag_common.model import Part

log = logging.getLogger(__name__)

TOKENS = range(1, 17)
ROWS = 8
TOLERANCES = {torch.float32: 1e-3}
HALF_TOLERANCE = 0.3
"""Of logits, relative to their size. What is fused is not rounded in between: compiled, Gemma 3 in
bfloat16 is as far from what it is otherwise as that is from float32."""


def compile_steps(network: PreTrainedModel, contexts: Contexts) -> None:
    """All passes of the contexts are compiled from now on, and both graphs are made. Raises
    StartError if they cannot be, or give something else."""
    began, before = time.monotonic(), _logits(contexts)
    try:
        network.base_model.compile(dynamic=True)
        after = _logits(contexts)
    except Exception as error:
        # What a compiler can stumble over has no end.
        log.debug("the steps cannot be compiled", exc_info=error)
        raise StartError(f"COMPILE=true: its steps cannot be compiled: {_told(error)}") from error
    off = _error(after, before)
    if not off <= TOLERANCES.get(network.dtype, HALF_TOLERANCE):
        raise StartError(f"COMPILE=true: compiled, its logits are off by {off:.1%}")
    seconds = time.monotonic() - began
    log.info("the steps were compiled in %.0f s, and their logits are off by %.1e", seconds, off)


def _logits(contexts: Contexts) -> torch.Tensor:
    """After some tokens of one pass, and after one in a pass by itself."""
    sequence, logits = contexts.new_sequence(), []
    try:
        for ids, rows in ((list(TOKENS), ROWS), ([0], 1)):
            sequence.extend(ids)
            (found,) = contexts.run([Part(sequence, len(ids), rows)])
            logits.append(found.tensor.float())
    finally:
        sequence.drop_cache()
    return torch.cat(logits)


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The median of the rows, where some rounding decides which experts are chosen."""
    size = (expected - expected.mean(-1, keepdim=True)).norm(dim=-1)
    return float(((found - expected).norm(dim=-1) / size).median())


def _told(error: Exception) -> str:
    """The compiler's own words, without the layers around them."""
    inner = error
    while isinstance(cause := getattr(inner, "inner_exception", inner.__cause__), Exception):
        inner = cause
    return first_line(inner)
