"""How much memory the caches of all sessions may take, as an operator writes it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from uag_common.sizes import parse_size

FORMS = "a size with its unit (8GB, 800MB, GiB or MiB), or a share of what is free (40%)"


@dataclass(frozen=True, slots=True)
class Budget:
    """A number of bytes, or a share of those that are free once the weights are loaded."""

    bytes: int | None
    share: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError that says what would be right."""
        if size := parse_size(text):
            return cls(size, 1.0)
        if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", text):
            if 0 < float(match[1]) <= 95:
                return cls(None, float(match[1]) / 100)
            raise ValueError("must be a share from above 0% to 95%")
        raise ValueError(f"must be auto, {FORMS}")

    def of(self, free: int) -> int:
        """In bytes, where so many are free."""
        return int(self.share * free) if self.bytes is None else self.bytes
