"""Answers of an emulated pair, measured in several ways at several costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from benchmarks.emulation.recordings import Recording
from benchmarks.emulation.scenario import Scenario, Telling
from benchmarks.emulation.services import EmulatedServices, emulated_request
from orchestrator.bench.limits import best_sequential
from tests.services import Answer
from uag.orchestrator.v1 import orchestrator_pb2 as pb


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in the grid; `a` and `c` as in `limits`."""

    step_ms: float
    a: float
    c: float

    def scenario(self, recording: str, telling: Telling, seed: int) -> Scenario:
        return Scenario(recording, self.step_ms / 1000, self.c, self.a, telling, seed=seed)


@dataclass(frozen=True, slots=True)
class Way:
    """How to draft: not at all, always so many tokens (`draft_tokens`), or as the server plans."""

    name: str
    mode: pb.SpeculationMode
    draft_tokens: int | None = None

    def options(self) -> pb.SpeculationOptions:
        asked = pb.SpeculationOptions(mode=self.mode, draft_tokens=self.draft_tokens)
        if self.mode == pb.SPECULATION_MODE_AUTO:
            # The draft model alone is measured.
            asked.lookup_tokens = 0
        return asked


OFF = Way("off", pb.SPECULATION_MODE_OFF)
AUTO = Way("auto", pb.SPECULATION_MODE_AUTO)


def forced(draft_tokens: int) -> Way:
    return Way(f"forced {draft_tokens}", pb.SPECULATION_MODE_FORCE, draft_tokens)


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over answers; the time is that after their first tokens, in seconds."""

    tokens: int = 0
    seconds: float = 0.0
    rounds: int = 0
    draft_tokens: int = 0
    candidates: int = 0
    examined: int = 0
    accepted: int = 0
    verify_seconds: float = 0.0
    draft_seconds: float = 0.0
    convert_seconds: float = 0.0
    network_seconds: float = 0.0
    queue_seconds: float = 0.0
    plan_seconds: float = 0.0

    @classmethod
    def of(cls, answer: Answer) -> Figures:
        counts, times = answer.finished.speculation, answer.finished.time
        return cls(
            tokens=len(answer.ids) - 1,
            seconds=times.total_seconds - times.first_token_seconds,
            rounds=counts.rounds,
            draft_tokens=counts.draft_tokens_proposed,
            candidates=counts.candidates_proposed,
            examined=counts.candidates_examined,
            accepted=counts.candidates_accepted,
            verify_seconds=times.verify_seconds,
            draft_seconds=times.draft_seconds,
            convert_seconds=times.convert_seconds,
            network_seconds=times.network_seconds,
            queue_seconds=times.queue_seconds,
            plan_seconds=times.plan_seconds,
        )

    def __add__(self, other: Figures) -> Figures:
        sums = {n: getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__}
        return replace(self, **sums)

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds

    @property
    def acceptance(self) -> float | None:
        """Accepted of examined candidates; None if there were none."""
        return self.accepted / self.examined if self.examined else None

    @property
    def outside_ms(self) -> float:
        """Of a round, beside the emulated passes. Where they overlap it may be less than 0."""
        passes = self.verify_seconds + self.draft_seconds
        return 1000 * (self.seconds - passes) / self.rounds


@dataclass(slots=True)
class Measured:
    """One cell: by way, in the order in which they are told."""

    cell: Cell
    figures: dict[Way, Figures] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked in each cell. `draft_tokens` are forced; without any, about as many as are best
    by the formula. `fresh`: of an orchestrator that has measured nothing of another cell; in
    any case `auto` has answered `warm_up` prompts before any that counts."""

    recordings: Sequence[Recording]
    tokens: int | None
    draft_tokens: Sequence[int]
    telling: Telling
    seed: int
    warm_up: int
    fresh: bool
    auto: bool = True

    def ways(self, cell: Cell) -> list[Way]:
        best = max(1, best_sequential(cell.a, cell.c).candidates)
        counts = self.draft_tokens or sorted({max(1, best // 2), best, min(2 * best, 32)})
        return [OFF, *map(forced, counts), *([AUTO] if self.auto else [])]


def measure(services: EmulatedServices, cells: Sequence[Cell], plan: Plan) -> Iterator[Measured]:
    """Raises ValueError if an answer is not what was recorded."""
    for number, cell in enumerate(cells):
        if plan.fresh and number:
            services.renew_orchestrator()
        for recording in plan.recordings[: plan.warm_up]:
            _answer(services, cell, AUTO, recording, plan)
        yield _measured(services, cell, plan)


def _measured(services: EmulatedServices, cell: Cell, plan: Plan) -> Measured:
    """The ways take turns at being first."""
    ways = plan.ways(cell)
    measured = Measured(cell, {way: Figures() for way in ways})
    for number, recording in enumerate(plan.recordings):
        turn = number % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            answer = _answer(services, cell, way, recording, plan)
            measured.figures[way] += Figures.of(answer)
    return measured


def _answer(
    services: EmulatedServices, cell: Cell, way: Way, recording: Recording, plan: Plan
) -> Answer:
    scenario = cell.scenario(recording.name, plan.telling, plan.seed)
    answer = services.generate(emulated_request(scenario, way.options(), plan.tokens))
    ids = recording.ids
    if answer.ids != [ids[at % len(ids)] for at in range(len(answer.ids))]:
        raise ValueError(f"{recording.name}, {way.name}: the answer is not what was recorded")
    if answer.finished.HasField("degraded"):
        raise ValueError(f"drafting stopped: {answer.finished.degraded.reason}")
    return answer


def grid(steps: Sequence[float], shares: Sequence[float], costs: Sequence[float]) -> list[Cell]:
    """All of them."""
    return [Cell(step, a, c) for step, a, c in product(steps, shares, costs)]
