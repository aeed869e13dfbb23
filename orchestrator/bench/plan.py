"""Who is asked what, and when: the ways take turns at every prompt. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.bench.prompts import WARM_UP, BenchPrompt
from orchestrator.bench.way import Way

WARM_UP_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Turn:
    """One request to come. `place`: how many ways had their turn at this prompt before."""

    prompt: BenchPrompt
    repetition: int
    temperature: float
    seed: int
    tokens: int
    way: Way
    place: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is to be measured. `repeat`: times that each prompt is asked in each way; `tokens`: most
    of an answer; `seed`: the answers drawn follow from it."""

    tokens: int
    repeat: int
    seed: int
    temperatures: tuple[float, ...]
    ways: tuple[Way, ...]


def turns(
    prompts: Sequence[BenchPrompt], wishes: Wishes, works: Callable[[Way, float], bool]
) -> Iterator[Turn]:
    """All of them. A prompt is asked in all ways before the next, and each time another way is the
    first, so that what changes with time or place touches all ways alike. `works` leaves out a way
    at a temperature."""
    for repetition in range(wishes.repeat):
        for number, prompt in enumerate(prompts):
            for temperature in wishes.temperatures:
                ways = [way for way in wishes.ways if works(way, temperature)]
                first = (number + repetition) % max(1, len(ways))
                for place, way in enumerate((*ways[first:], *ways[:first])):
                    yield Turn(
                        prompt=prompt,
                        repetition=repetition,
                        temperature=temperature,
                        seed=wishes.seed + repetition * len(prompts) + number,
                        tokens=wishes.tokens,
                        way=way,
                        place=place,
                    )


def warm_up(wishes: Wishes, works: Callable[[Way, float], bool]) -> Iterator[Turn]:
    """One for each way and temperature, which do not count."""
    for temperature in wishes.temperatures:
        for way in wishes.ways:
            if works(way, temperature):
                yield Turn(WARM_UP, 0, temperature, wishes.seed, WARM_UP_TOKENS, way, 0)
