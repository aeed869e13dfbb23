"""What the emulated target and the emulated draft say, and how long they take for it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from benchmarks.emulation.belief import Belief
from benchmarks.emulation.coins import toss
from benchmarks.emulation.recordings import Recording
from benchmarks.emulation.scenario import Scenario
from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.decoding import Choice


class Player(Protocol):
    """Plays a model. All scenarios are of recordings that it knows."""

    def knows(self, scenario: Scenario) -> bool:
        """Whether it has the recording."""

    def seconds(self, scenario: Scenario, tokens: int) -> float:
        """What a forward pass over so many tokens of one session takes."""

    def next(self, scenario: Scenario, answer: Sequence[int]) -> Choice:
        """The token after these of the answer, with its log-probability."""


class TargetPlayer:
    """Says what was recorded, and begins again after its end. What it says after a wrong token
    nobody looks at."""

    def __init__(self, recordings: Mapping[str, Recording]) -> None:
        self._recordings = recordings

    def knows(self, scenario: Scenario) -> bool:
        return scenario.recording in self._recordings

    def seconds(self, scenario: Scenario, tokens: int) -> float:
        return scenario.step_seconds + (tokens - 1) * scenario.token_seconds

    def next(self, scenario: Scenario, answer: Sequence[int]) -> Choice:
        ids = self._recordings[scenario.recording].ids
        return Choice(ids[len(answer) % len(ids)], 0.0)


class DraftPlayer:
    """Says what it believes that the target says."""

    def __init__(self, recordings: Mapping[str, Recording], vocabulary: Vocabulary) -> None:
        self._recordings = recordings
        self._vocabulary = vocabulary
        self._belief = cache(self._new_belief)
        self._share = cache(self._new_share)

    def knows(self, scenario: Scenario) -> bool:
        return scenario.recording in self._recordings

    def seconds(self, scenario: Scenario, tokens: int) -> float:  # noqa: ARG002
        """A step gives one token of the draft: `cost` is for the text of one of the target's."""
        return scenario.cost * scenario.step_seconds * self._share(scenario.recording)

    def next(self, scenario: Scenario, answer: Sequence[int]) -> Choice:
        spelled = self._vocabulary.spell(list(answer))
        said = self._belief(scenario).after(sum(map(len, spelled)))
        return Choice(said.id, math.log(said.probability) if said.probability else -math.inf)

    def _new_share(self, name: str) -> float:
        """Of target tokens to draft tokens in the recorded text."""
        recording = self._recordings[name]
        return len(recording.ids) / len(spans(self._vocabulary, recording.text).ids)

    def _new_belief(self, scenario: Scenario) -> Belief:
        recording = self._recordings[scenario.recording]
        return Belief(recording, toss(scenario, len(recording.ids)), self._vocabulary)
