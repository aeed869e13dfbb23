"""How much of each device's memory weights may take, as an operator writes it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from uag_common.sizes import parse_size

FORM = "must be a size for each device, as in cuda:0=20GB cuda:1=20GB cpu=100GB"
DEVICE = re.compile(r"cuda:\d+|cpu")


@dataclass(frozen=True, slots=True)
class WeightMemory:
    """Most bytes on devices, by name; `cpu` is main memory. One that is not named has no limit."""

    limits: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError that says what would be right."""
        limits = tuple(_limit(word) for word in text.split())
        if len({device for device, _ in limits}) < len(limits):
            raise ValueError("must name each device once")
        return cls(limits)


def _limit(word: str) -> tuple[str, int]:
    device, _, written = word.partition("=")
    size = parse_size(written)
    if size is None or not DEVICE.fullmatch(device):
        raise ValueError(FORM)
    return device, size
