"""A model of which only the tokenizer is real: `uag_common.model.Model` without weights.

What it says and what a pass takes is the player's. A pass of several sessions takes as long as the
slowest of them, as on a GPU that reads the weights once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.emulation.player import Player
from benchmarks.emulation.scenario import Scenario
from benchmarks.emulation.timing import wait_until
from benchmarks.emulation.tokenizers import TokenizedModel
from uag_common.decoding import Choice, Decoding, NoisePosition
from uag_common.errors import InvalidRequestError
from uag_common.kv.pool import BlockPool
from uag_common.model import Logits, Part, TokenSequence

BYTES_PER_TOKEN = 1000
"""Of a cache that is not there: kept ones are to be a bounded number."""


@dataclass(frozen=True, slots=True)
class EmulatedLogits:
    """What a chooser needs: it looks at the context itself."""

    rows: int
    scenario: Scenario


@dataclass(slots=True)
class EmulatedSequence:
    """Counts what would be cached. `scenario`: once it was read in the context."""

    ids: list[int] = field(default_factory=list)
    cached: int = 0
    scenario: Scenario | None = None

    @property
    def cache_bytes(self) -> int:
        return self.cached * BYTES_PER_TOKEN

    def truncate(self, length: int) -> None:
        del self.ids[length:]
        self.cached = min(self.cached, length)

    def extend(self, ids: Sequence[int]) -> None:
        self.ids.extend(ids)

    def pending(self, rows: int) -> int:
        if not 1 <= rows <= len(self.ids):
            raise ValueError(f"{rows} rows asked of a context of {len(self.ids)} tokens")
        return len(self.ids) - min(self.cached, len(self.ids) - rows)

    def reach(self, length: int) -> int:  # noqa: ARG002
        return 1 << 62

    def blocks_for(self, tokens: int) -> int:  # noqa: ARG002
        return 0

    def fork(self, length: int) -> EmulatedSequence:
        # Another prompt may begin alike and have another scenario.
        return EmulatedSequence(self.ids[:length], min(self.cached, length))

    def drop_cache(self) -> None:
        self.cached = 0

    def run(self, part: Part) -> int:
        """How many rows of logits come out."""
        pending = self.pending(part.rows)
        self.cached = len(self.ids) - pending + part.tokens
        return part.rows if part.tokens == pending else 0


class EmulatedModel:
    """One model as its service sees it."""

    most_parts = 256

    def __init__(self, model: TokenizedModel, player: Player) -> None:
        self.description = model.description
        self.tokenizer_files = model.files
        self.blocks = BlockPool(1000, 16)
        self._vocabulary = model.vocabulary
        self._player = player

    def new_sequence(self) -> TokenSequence:
        return EmulatedSequence()

    def run(self, parts: Sequence[Part]) -> Sequence[EmulatedLogits]:
        """Raises InvalidRequestError for a context that has no scenario."""
        began = time.perf_counter()
        sequences = [_sequence(part) for part in parts]
        scenarios = [self._scenario(sequence) for sequence in sequences]
        seconds = max(
            self._player.seconds(scenario, part.tokens)
            for scenario, part in zip(scenarios, parts, strict=True)
        )
        done = [
            EmulatedLogits(sequence.run(part), scenario)
            for sequence, part, scenario in zip(sequences, parts, scenarios, strict=True)
        ]
        wait_until(began + seconds)
        return done

    def _scenario(self, sequence: EmulatedSequence) -> Scenario:
        if sequence.scenario is None:
            sequence.scenario = self._read(b"".join(self._vocabulary.spell(sequence.ids)))
        return sequence.scenario

    def _read(self, text: bytes) -> Scenario:
        try:
            scenario = Scenario.find(text)
        except ValueError as error:
            raise InvalidRequestError("prompt", str(error)) from error
        if scenario is None or not self._player.knows(scenario):
            raise InvalidRequestError("prompt", "names no recording that is emulated here")
        return scenario

    def new_chooser(self, decoding: Decoding, answer_start: int) -> EmulatedChooser:
        return EmulatedChooser(self._player, decoding, answer_start)

    def prompt_logprobs(self, logits: Logits, ids: Sequence[int], top: int) -> Sequence[Choice]:  # noqa: ARG002
        raise InvalidRequestError("logprobs", "an emulation tells none of a prompt")


@dataclass(frozen=True, slots=True)
class EmulatedChooser:
    """Asks the player. Where the answer stands it sees in the context."""

    player: Player
    decoding: Decoding
    answer_start: int

    def choose(self, logits: Logits, row: int, ids: Sequence[int], length: int) -> Choice:
        if not isinstance(logits, EmulatedLogits) or not 0 <= row < logits.rows:
            raise ValueError(f"no row {row} in {logits}")
        choice = self.player.next(logits.scenario, ids[self.answer_start : length])
        return choice if self.decoding.top_logprobs is not None else Choice(choice.id)

    def advance(self, token_id: int) -> None: ...

    def move(self, position: NoisePosition) -> None: ...


def _sequence(part: Part) -> EmulatedSequence:
    if not isinstance(part.sequence, EmulatedSequence):
        raise TypeError("a sequence of another model")
    return part.sequence
