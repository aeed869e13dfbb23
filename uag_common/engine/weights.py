"""Where the weights of a loaded network lie. Those that are fetched in each pass are on no device
(on `meta`) between two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class WeightSize:
    """How large a network is; what is shared counts once."""

    parameters: int
    bytes: int

    @classmethod
    def of(cls, network: PreTrainedModel) -> WeightSize:
        """As it was loaded."""
        stored = sum(p.numel() * p.element_size() for p in network.parameters())
        return cls(network.num_parameters(), stored)


def home(network: PreTrainedModel) -> torch.device:
    """Where its inputs are to lie, and its logits come out."""
    devices = (parameter.device for parameter in network.parameters() if not parameter.is_meta)
    return next(devices, torch.device("cpu"))


def fetched_sizes(network: PreTrainedModel) -> Iterator[int]:
    """Bytes of each weight that is fetched."""
    for parameter in network.parameters():
        if parameter.is_meta:
            yield parameter.numel() * parameter.element_size()
