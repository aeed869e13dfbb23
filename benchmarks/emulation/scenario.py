"""What is emulated for one request. It stands in the request's own prompt, in a line that both
models read, so that one pair of services plays any of them. Plain values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Telling(Enum):
    """What a draft tells of its tokens: that each is as likely right as all are, or which of them
    are more likely right. In both, of the target tokens with probability p a share p is right."""

    CONSTANT = "constant"
    INFORMED = "informed"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Which recording is played, and at which costs.

    `step_seconds`: a forward pass of the target, and `token_seconds` for each token in it after the
    first of each session. `cost`: what the draft takes for the text of a target token, in steps of
    the target. `acceptance`: the share of the target's tokens that the draft knows, others drawn by
    `seed`.
    """

    recording: str
    step_seconds: float
    cost: float
    acceptance: float
    telling: Telling = Telling.CONSTANT
    token_seconds: float = 0.0
    seed: int = 0

    @property
    def line(self) -> str:
        """For a prompt; `find` finds it there."""
        return (
            f"[emulation of={self.recording} step_ms={1000 * self.step_seconds:g} "
            f"token_ms={1000 * self.token_seconds:g} c={self.cost:g} a={self.acceptance:g} "
            f"telling={self.telling.value} seed={self.seed}]"
        )

    @classmethod
    def find(cls, text: bytes) -> Scenario | None:
        """The one that a prompt has a line of. Raises ValueError for a line that is none."""
        found = _LINE.search(text)
        if found is None:
            return None
        try:
            fields = dict(word.split("=") for word in found[1].decode().split())
            return cls(
                recording=fields["of"],
                step_seconds=float(fields["step_ms"]) / 1000,
                cost=float(fields["c"]),
                acceptance=float(fields["a"]),
                telling=Telling(fields["telling"]),
                token_seconds=float(fields["token_ms"]) / 1000,
                seed=int(fields["seed"]),
            )
        except KeyError as missing:
            raise ValueError(f"an emulation without {missing}") from missing


_LINE = re.compile(rb"\[emulation ([^\]]*)\]")
