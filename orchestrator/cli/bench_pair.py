"""One pair being measured: its services, our own answers, and the turns of all ways.

Knows services. Who else answers is handed in.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from orchestrator.bench.comparison import Judge, unjudged
from orchestrator.bench.findings import find
from orchestrator.bench.heading import ModelFacts
from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.bench.plan import Turn, turns, warm_up
from orchestrator.bench.prompts import BenchPrompt
from orchestrator.bench.record import Record
from orchestrator.bench.report import PairReport
from orchestrator.bench.stopwatch import watch
from orchestrator.bench.way import Way, options
from orchestrator.cli import needs
from orchestrator.cli.bench_flags import Choices
from orchestrator.cli.bench_progress import told
from orchestrator.cli.interrupts import uninterrupted
from orchestrator.cli.services import Pair, Services, shared_threads, start, wait_until_ready
from orchestrator.cli.supervisor import Supervisor
from orchestrator.cli.terminal import Screen
from orchestrator.client import Client, Options, Prompt, UnavailableError
from uag_common.models.progress import TerminalProgress
from uag_common.models.source import resolve
from uag_common.models.store import ModelStore

ANSWER_SECONDS = 1800.0

Answer = Callable[[Turn], Reply]
Works = Callable[[Way, float], bool]


def always(_way: Way, _temperature: float) -> bool:
    """Each way can be measured at each temperature."""
    return True


@dataclass(frozen=True, slots=True)
class RunningPair:
    """A pair that answers, and what its services tell of it."""

    client: Client
    target: ModelFacts
    draft: ModelFacts
    chat_template: bool

    def prompt(self, prompt: BenchPrompt) -> Prompt:
        """In the form that suits the target."""
        return prompt.form(chat_template=self.chat_template)

    def answer(self, turn: Turn) -> Reply:
        """In a way of ours. Raises ClientError."""
        # What an earlier request computed would make the prefill of this one free.
        keywords: Options = {
            **options(turn.way),
            "max_new_tokens": turn.tokens,
            "cache_salt": secrets.token_hex(8),
        }
        if turn.temperature:
            keywords = {**keywords, "temperature": turn.temperature, "seed": turn.seed}
        asked = time.perf_counter()
        # A channel where a call is half begun can never be closed.
        with uninterrupted():
            stream = self.client.generate(self.prompt(turn.prompt), **keywords)
        return watch(stream, asked)


@contextmanager
def running_pair(pair: Pair, services: Services, screen: Screen) -> Iterator[RunningPair]:
    """Fetches both models, starts the services, and ends them when the block is left. Raises
    UagError."""
    services.check_ports()
    folders = [resolve(name, progress=TerminalProgress()) for name in (pair.target, pair.draft)]
    store = ModelStore.from_environment()
    here = needs.Supply.measure(store.settings.root)
    fetched = replace(pair, target=str(folders[0]), draft=str(folders[1]))
    needs.check(needs.needs_of(fetched, store), here)
    with Supervisor() as supervisor:
        began = time.monotonic()
        for ready in wait_until_ready(supervisor, start(supervisor, services), began):
            screen.line(f"{ready.spec.module} serves after {ready.seconds:.1f} s")
        address = services.orchestrator.reached_at
        with Client(address, timeout=ANSWER_SECONDS) as client:
            yield _described(client)


def _described(client: Client) -> RunningPair:
    models = client.describe()
    if models.draft is None:
        raise UnavailableError("the draft service was lost before anything was measured")
    target, draft = ModelFacts.of(models.target), ModelFacts.of(models.draft)
    return RunningPair(client, target, draft, models.chat_template)


def measure(
    running: RunningPair, choices: Choices, answer: Answer, record: Record, works: Works = always
) -> list[Measurement]:
    """All turns, after those that warm up, each in the record as soon as it is over. Raises
    UagError."""
    wishes, prompts = choices.wishes, choices.prompts.prompts
    for turn in told(list(warm_up(wishes, works)), "warming up"):
        answer(turn)
    found = []
    for turn in told(list(turns(prompts, wishes, works)), "measuring"):
        measurement = _measured(running, turn, answer(turn))
        record.add(measurement)
        found.append(measurement)
    return found


def _measured(running: RunningPair, turn: Turn, reply: Reply) -> Measurement:
    return Measurement(
        target=running.target.model_id,
        draft=running.draft.model_id,
        prompt=turn.prompt.id,
        kind=turn.prompt.kind,
        repetition=turn.repetition,
        temperature=turn.temperature,
        seed=turn.seed,
        way=turn.way.value,
        place=turn.place,
        reply=reply,
    )


def pair_reports(
    running: RunningPair,
    measured: Sequence[Measurement],
    choices: Choices,
    baseline: Way,
    judge: Judge = unjudged,
) -> Iterator[PairReport]:
    """One for each temperature."""
    for temperature in choices.wishes.temperatures:
        of = [each for each in measured if each.temperature == temperature]
        yield PairReport.of(running.target, running.draft, find(of, baseline, judge))


def threads(environ: Mapping[str, str] = os.environ) -> int | None:
    """Of the target's forward passes, as its service has them; None: as the library chooses."""
    told = (
        shared_threads(environ).get("threads")
        or environ.get("UAG_VERIFY_THREADS")
        or environ.get("OMP_NUM_THREADS")
    )
    return int(told) if told and told.isdigit() and int(told) else None
