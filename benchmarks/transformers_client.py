"""transformers' own answers, from a process that holds the same weights. Knows the project's values
of a benchmark; torch is on the other side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.bench.comparison import Gap
from orchestrator.bench.heading import ModelFacts
from orchestrator.bench.measurement import Reply
from orchestrator.bench.way import Way
from uag_common.errors import UagError
from uag_common.line_process import LineProcess, NoReplyError, ProcessEndedError

PROGRAM = Path(__file__).parent / "transformers_peer.py"
PATIENCE_SECONDS = 1800.0


class PeerError(UagError):
    """transformers did not answer; the message has its words."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Of the libraries of the process."""

    torch: str
    transformers: str


class Transformers:
    """The process; it ends with `close`, and with this one. Loads with the first question."""

    def __init__(self, target: Path, draft: Path, facts: ModelFacts, threads: int | None) -> None:
        """The target's device and number type hold for both. Raises InternalError."""
        opening = {
            "target": str(target),
            "draft": str(draft),
            "dtype": facts.dtype,
            "device": facts.device,
            "threads": threads,
        }
        self._process = LineProcess(PROGRAM, opening, PATIENCE_SECONDS)

    def versions(self) -> Versions:
        """Waits until both models are loaded. Raises PeerError."""
        return Versions(**self._ask({"do": "tell"}))

    def answer(
        self, way: Way, prompt_ids: tuple[int, ...], tokens: int, temperature: float, seed: int
    ) -> Reply:
        """Raises PeerError."""
        told = self._ask(
            {
                "do": "generate",
                "way": way.value,
                "prompt": prompt_ids,
                "tokens": tokens,
                "temperature": temperature,
                "seed": seed,
            }
        )
        first, first_tokens = told["arrivals"][0]
        last, _ = told["arrivals"][-1]
        return Reply(
            prompt_tokens=len(prompt_ids),
            ids=tuple(told["ids"]),
            first_tokens=first_tokens,
            first_seconds=first,
            last_seconds=last,
            rounds=told["passes"] - 1,
        )

    def gap(self, context: tuple[int, ...], one: int, other: int) -> Gap:
        """Of two ids after a context. Raises PeerError."""
        return Gap(**self._ask({"do": "gap", "context": context, "one": one, "other": other}))

    def close(self) -> None:
        self._process.close()

    def _ask(self, request: Mapping[str, Any]) -> Any:
        try:
            reply = self._process.ask(request)
        except ProcessEndedError as error:
            raise PeerError(f"transformers' process {error}") from error
        except NoReplyError as error:
            raise PeerError(f"transformers did not answer in {PATIENCE_SECONDS:g} s") from error
        if "error" in reply:
            raise PeerError(f"transformers: {reply['error']}")
        return reply
