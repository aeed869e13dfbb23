"""One plain forward pass over the next tokens of one context. Knows no sessions and no blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from uag_common.engine.weights import home


class Forwarded(NamedTuple):
    """`logits` after each of the last tokens, [rows, vocabulary], and all that the model gave."""

    logits: torch.Tensor
    output: Any


@torch.inference_mode()
def forward(network: PreTrainedModel, ids: Sequence[int], rows: int, **options: Any) -> Forwarded:
    """Runs the tokens, with the logits after each of the last `rows` (0: none). `options` are the
    model's own: what it keeps of the tokens before."""
    if network._supports_logits_to_keep():
        # 0 would mean all of them.
        options["logits_to_keep"] = max(rows, 1)
    output = network(input_ids=torch.tensor([ids], device=home(network)), **options)
    logits = output.logits[0]
    return Forwarded(logits[len(logits) - rows :], output)
