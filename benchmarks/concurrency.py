"""Many requests at once: `python -m benchmarks.concurrency [--levels 1 4 8 16] [--tokens N]`.

Two sets of services hold the same pair: in one, sessions share forward passes, in the other each
has its own. At each level so many clients ask at once, with guesses off, as the server plans them,
and with forced drafts, and the sets take turns. Told are tokens a second of all clients together,
the time to the first token, and the longest pause between two deltas of one answer. At the end, a
long prompt arrives while others are being answered: how much longer is their longest pause than
their median step?
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import grpc
from rich.progress import track

from orchestrator.cli.services import DEFAULT_PAIR
from tests.services import RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag.orchestrator.v1 import orchestrator_pb2_grpc

LEVELS = (1, 4, 8, 16)
DRAFT_TOKENS = 3
QUESTIONS = (
    "Why is the sky blue?",
    "Give three tips for learning a new language.",
    "Explain how a bicycle stays upright.",
    "Write a Python function that reverses the words of a sentence.",
    "Summarise the water cycle in two sentences.",
    "List five uses of a paper clip.",
    "What is the difference between weather and climate?",
    "Translate into French: The train leaves at nine in the morning.",
)
LONG_PROMPT = "The river is wide and slow, and nobody knows where it comes from. " * 100
QUESTIONS_OF_CLIENT = 3
STREAMS = 4
"""Answers that run while the long prompt arrives."""


class Guesses(Enum):
    """How requests guess."""

    OFF = "off"
    AUTO = "auto"
    FORCED = "forced"

    def options(self) -> pb.SpeculationOptions:
        match self:
            case Guesses.OFF:
                return pb.SpeculationOptions(mode=pb.SPECULATION_MODE_OFF)
            case Guesses.AUTO:
                return pb.SpeculationOptions(mode=pb.SPECULATION_MODE_AUTO)
            case Guesses.FORCED:
                return pb.SpeculationOptions(
                    mode=pb.SPECULATION_MODE_FORCE, draft_tokens=DRAFT_TOKENS
                )


@dataclass(frozen=True, slots=True)
class Way:
    """How a set of services runs, and how requests guess."""

    batched: bool
    guesses: Guesses

    def __str__(self) -> str:
        shared = "shared passes" if self.batched else "one at a time"
        return f"{shared}, {self.guesses.value}"


@dataclass(frozen=True, slots=True)
class Stream:
    """One answer: when it was asked for, and when each of its deltas came, in seconds of one
    clock; and the tokens of each delta."""

    asked: float
    deltas: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def first_seconds(self) -> float:
        return self.deltas[0] - self.asked

    @property
    def pauses(self) -> list[float]:
        """Between two deltas."""
        return [later - earlier for earlier, later in pairwise(self.deltas)]


@dataclass(frozen=True, slots=True)
class Load:
    """What so many clients got together in one go."""

    tokens_per_second: float
    first_seconds: float
    longest_pause: float

    @classmethod
    def of(cls, clients: Sequence[Sequence[Stream]]) -> Load:
        """The rate is that of the time in which all clients are busy: from when the first asks to
        when the first has its last token."""
        streams = [stream for client in clients for stream in client]
        began = min(stream.asked for stream in streams)
        ended = min(client[-1].deltas[-1] for client in clients)
        tokens = sum(
            count
            for stream in streams
            for came, count in zip(stream.deltas, stream.tokens, strict=True)
            if came <= ended
        )
        return cls(
            tokens / (ended - began),
            statistics.median(stream.first_seconds for stream in streams),
            max(pause for stream in streams for pause in stream.pauses),
        )


def question(number: int, tokens: int, guesses: Guesses) -> pb.GenerateRequest:
    """None of them shares its prompt with another."""
    text = f"{QUESTIONS[number % len(QUESTIONS)]} (Question {number}.)"
    return pb.GenerateRequest(
        chat=pb.Chat(messages=[pb.ChatMessage(role="user", content=text)]),
        max_new_tokens=tokens,
        stopping=pb.StoppingOptions(ignore_eos=True),
        speculation=guesses.options(),
    )


async def streamed(channel: grpc.aio.Channel, request: pb.GenerateRequest) -> Stream:
    stub = orchestrator_pb2_grpc.OrchestratorStub(channel)
    asked, deltas, tokens = time.perf_counter(), list[float](), list[int]()
    async for event in stub.Generate(request):
        if event.HasField("delta") and event.delta.tokens:
            deltas.append(time.perf_counter())
            tokens.append(len(event.delta.tokens))
    return Stream(asked, tuple(deltas), tuple(tokens))


async def load(address: str, clients: int, tokens: int, guesses: Guesses) -> Load:
    """All begin to ask at the same moment, each one question after another."""
    async with grpc.aio.insecure_channel(address) as channel:

        async def client(number: int) -> Sequence[Stream]:
            numbers = range(number, number + clients * QUESTIONS_OF_CLIENT, clients)
            return [await streamed(channel, question(each, tokens, guesses)) for each in numbers]

        return Load.of(await asyncio.gather(*map(client, range(clients))))


@dataclass(frozen=True, slots=True)
class Arrival:
    """The pauses of running answers, before and while a long prompt is computed, in seconds, and
    how long that took."""

    median_step: float
    longest_pause: float
    prompt_tokens: int
    first_seconds: float

    @property
    def ratio(self) -> float:
        return self.longest_pause / self.median_step


async def arrival(address: str, tokens: int, number: int) -> Arrival:
    """None of them finds a part of its prompt already computed."""
    prompt = f"{number}. {LONG_PROMPT}"
    async with grpc.aio.insecure_channel(address) as channel:
        running = [
            asyncio.ensure_future(streamed(channel, question(number, tokens, Guesses.OFF)))
            for number in range(STREAMS)
        ]
        await asyncio.sleep(2.0)
        request = pb.GenerateRequest(text=prompt, max_new_tokens=2)
        request.speculation.mode = pb.SPECULATION_MODE_OFF
        long = await streamed(channel, request)
        tokenized = await orchestrator_pb2_grpc.OrchestratorStub(channel).Tokenize(
            pb.TokenizeRequest(text=prompt)
        )
        streams = await asyncio.gather(*running)
    before = [
        pause
        for stream in streams
        for start, pause in zip(stream.deltas, stream.pauses, strict=False)
        if stream.deltas[0] + 0.5 < start + pause < long.asked
    ]
    during = [
        pause
        for stream in streams
        for start, pause in zip(stream.deltas, stream.pauses, strict=False)
        if start + pause > long.asked and start < long.deltas[0]
    ]
    return Arrival(statistics.median(before), max(during), len(tokenized.ids), long.first_seconds)


Found = Mapping[tuple[Way, int], Sequence[Load]]


def measure(
    sets: Mapping[bool, RunningServices],
    ways: Sequence[Way],
    levels: Sequence[int],
    tokens: int,
    runs: int,
) -> Found:
    """The ways take turns at being first; the first run of all warms up and does not count."""
    found: dict[tuple[Way, int], list[Load]] = {}
    plan = [(run, level) for run in range(-1, runs) for level in levels if run >= 0 or level == 1]
    for run, level in track(plan, "runs and levels"):
        for way in ways if run % 2 else reversed(ways):
            address = sets[way.batched].orchestrator
            done = asyncio.run(load(address, level, tokens, way.guesses))
            if run >= 0:
                found.setdefault((way, level), []).append(done)
    return found


def table(found: Found, ways: Sequence[Way], levels: Sequence[int]) -> Iterator[str]:
    """In Markdown."""
    yield (
        "| | requests | tokens a second (lowest to highest) | of off with 1 request "
        "| of off with as many | first token, s | longest pause, s |"
    )
    yield "|---|---|---|---|---|---|---|"
    for way in ways:
        off = Way(way.batched, Guesses.OFF)
        for level in levels:
            loads = found[way, level]
            rates = [done.tokens_per_second for done in loads]
            first = statistics.median(done.first_seconds for done in loads)
            pause = statistics.median(done.longest_pause for done in loads)
            yield (
                f"| {way} | {level} | {statistics.median(rates):.1f} ({min(rates):.1f} to "
                f"{max(rates):.1f}) | {_ratio(loads, found[off, min(levels)]):.2f} | "
                f"{_ratio(loads, found[off, level]):.2f} | {first:.2f} | {pause:.2f} |"
            )


def _ratio(loads: Sequence[Load], to: Sequence[Load]) -> float:
    """The median of those that were measured in one run."""
    pairs = zip(loads, to, strict=True)
    return statistics.median(one.tokens_per_second / two.tokens_per_second for one, two in pairs)


def told(arrivals: Sequence[Arrival]) -> str:
    """The arrival of a long prompt, in a sentence."""
    ratios = [each.ratio for each in arrivals]
    step = statistics.median(each.median_step for each in arrivals)
    first = statistics.median(each.first_seconds for each in arrivals)
    return (
        f"A prompt of {arrivals[0].prompt_tokens} tokens arrives while {STREAMS} answers run "
        f"(median step {1000 * step:.0f} ms): their longest pause is "
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) median steps, "
        f"and its first token comes after {first:.1f} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--levels", type=int, nargs="*", default=LEVELS)
    parser.add_argument("--tokens", type=int, default=32, help="of each answer")
    parser.add_argument("--runs", type=int, default=3, help="of each way and level")
    parser.add_argument("--target", default=DEFAULT_PAIR.target)
    parser.add_argument("--draft", default=DEFAULT_PAIR.draft)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument(
        "--shared-only", action="store_true", help="only the services whose sessions share passes"
    )
    parser.add_argument(
        "--guesses", nargs="+", choices=[each.value for each in Guesses],
        default=[each.value for each in Guesses], help="off is always measured",
    )  # fmt: skip
    flags = parser.parse_args()
    settings = {"dtype": flags.dtype}
    asked = [each for each in Guesses if each is Guesses.OFF or each.value in flags.guesses]
    ways = [Way(batched, each) for each in asked for batched in (False, True)]
    with ExitStack() as stack:
        sets = {}
        for batched in (True,) if flags.shared_only else (True, False):
            own = settings if batched else {**settings, "max_batch": "1"}
            sets[batched] = stack.enter_context(
                running_services(flags.target, flags.draft, verify_settings=own, draft_settings=own)
            )
        ways = [way for way in ways if way.batched in sets]
        found = measure(sets, ways, flags.levels, flags.tokens, flags.runs)
        arrivals = [
            asyncio.run(arrival(sets[True].orchestrator, 5 * flags.tokens, number))
            for number in range(flags.runs)
        ]
    sys.stdout.write(
        f"{flags.target} with {flags.draft}, {flags.dtype}, {flags.tokens} tokens an answer, "
        f"{DRAFT_TOKENS} draft tokens where forced, {os.cpu_count()} cores, {flags.runs} runs:\n\n"
    )
    if flags.levels:
        sys.stdout.write("\n".join(table(found, ways, flags.levels)) + "\n\n")
    sys.stdout.write(f"{told(arrivals)}\n")


if __name__ == "__main__":
    main()
