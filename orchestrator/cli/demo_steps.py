"""The steps of `uag demo`. Knows services and screens; its texts are in `demo_text`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from orchestrator.cli import comparison, demo_text, figures, needs
from orchestrator.cli.answer_printer import LEGEND, AnswerPrinter
from orchestrator.cli.comparison import Answer
from orchestrator.cli.interrupts import uninterrupted
from orchestrator.cli.pair_check import NamedFolder, Verdict, check_pair
from orchestrator.cli.pair_text import pair_lines
from orchestrator.cli.services import Pair, Services, start, wait_until_ready
from orchestrator.cli.supervisor import Child, Supervisor
from orchestrator.cli.terminal import Screen
from orchestrator.client import Client, Message, Options
from uag_common.errors import UagError
from uag_common.models.progress import TerminalProgress
from uag_common.models.source import resolve
from uag_common.models.store import ModelStore

ANSWER_SECONDS = 600.0


class UnsupportedPairError(UagError):
    """These two models cannot work together; the message says why and what to do."""


class IdsDifferError(UagError):
    """In float32 the answer was not what the target alone says: a bug."""


class DemoSteps:
    """One demo of one pair. The guide's lines go to `guide`, answer and figures to `out`."""

    def __init__(self, pair: Pair, services: Services) -> None:
        self._pair = pair
        self._services = services
        self._guide = Screen.of(sys.stderr)
        self._out = Screen.of(sys.stdout)
        self._store = ModelStore.from_environment()

    def look(self) -> None:
        """Whether memory, disk and ports are there, before anything starts. Raises UagError."""
        needed = needs.needs_of(self._pair, self._store)
        here = needs.Supply.measure(self._store.settings.root)
        self._say(1, "What it needs", demo_text.needs_lines(self._pair, needed, here))
        needs.check(needed, here)
        self._services.check_ports()

    def fetch(self) -> tuple[NamedFolder, NamedFolder]:
        """Draft and target. Raises UagError."""
        self._say(2, "The models")
        target, draft = (self._fetch(name) for name in (self._pair.target, self._pair.draft))
        here = needs.Supply.measure(self._store.settings.root)
        fetched = replace(self._pair, draft=str(draft.folder), target=str(target.folder))
        # What comes from a hub tells its size only now.
        needs.check(needs.needs_of(fetched, self._store), here)
        return draft, target

    def _fetch(self, name: str) -> NamedFolder:
        folder = resolve(name, progress=TerminalProgress())
        self._guide.line(f"  {demo_text.model_line(name)}: {folder}")
        return NamedFolder(name, folder)

    def start(self, supervisor: Supervisor) -> tuple[Child, ...]:
        """They load while the vocabularies are compared."""
        self._began = time.monotonic()
        return start(supervisor, self._services)

    def compare_vocabularies(self, draft: NamedFolder, target: NamedFolder) -> None:
        """Raises UnsupportedPairError."""
        self._guide.line("  reading both vocabularies; a large one takes seconds")
        report = check_pair(draft, target)
        self._say(3, "The pair", pair_lines(report))
        if report.verdict is Verdict.UNSUPPORTED:
            raise UnsupportedPairError(report.note)

    def wait(self, supervisor: Supervisor, children: tuple[Child, ...]) -> None:
        """Raises ServiceDiedError."""
        self._say(4, "The services, each a process of its own")
        self._guide.line("  the orchestrator waits for both models and reads their vocabularies")
        for ready in wait_until_ready(supervisor, children, self._began):
            self._guide.line(
                f"  {ready.spec.module} serves on {ready.spec.address} after {ready.seconds:.1f} s"
            )

    def answer(self, prompt: Sequence[Message], options: Options) -> Answer:
        """Streams the answer, then its figures. Raises UagError."""
        self._say(5, "The answer", [f"> {prompt[-1].content}"])
        if self._out.coloured:
            self._guide.line(f"  {LEGEND}")
        printer = AnswerPrinter(self._out)
        try:
            answer = self._ask(prompt, options, printer)
        finally:
            printer.end()
        self._say(6, "Figures")
        for line in demo_text.figure_lines(answer.finished):
            self._out.line(line)
        return answer

    def answer_alone(self, prompt: Sequence[Message], options: Options) -> Answer:
        """The same without drafts, not shown. Raises UagError."""
        self._say(7, "The target alone, on the same prompt and the same services")
        answer = self._ask(prompt, {**options, "speculation": "off"}, None)
        self._out.line(figures.summary(answer.finished))
        return answer

    def answer_planned(self, prompt: Sequence[Message], options: Options) -> Answer:
        """The same as the server plans it by default, not shown. Raises UagError."""
        self._say(8, "As the server plans it: it drafts, looks up earlier text, or neither")
        answer = self._ask(prompt, options, None)
        self._out.line(figures.summary(answer.finished))
        return answer

    def _ask(
        self, prompt: Sequence[Message], options: Options, printer: AnswerPrinter | None
    ) -> Answer:
        address = self._services.orchestrator.reached_at
        with Client(address, timeout=ANSWER_SECONDS) as client:
            # A channel where a call is half begun can never be closed.
            with uninterrupted():
                call = client.generate(prompt, **options)
            with call as stream:
                for delta in stream:
                    if printer is not None:
                        printer.show(delta)
                return Answer(tuple(token.id for token in stream.tokens()), stream.finished())

    def compare(self, drafted: Answer, alone: Answer) -> None:
        """Raises IdsDifferError if they differ although they must not."""
        self._compare(comparison.lines(drafted, alone), drafted, alone)

    def compare_planned(self, planned: Answer, alone: Answer) -> None:
        """As `compare`."""
        self._compare(comparison.planned_lines(planned, alone), planned, alone)

    def _compare(self, lines: Sequence[str], drafted: Answer, alone: Answer) -> None:
        for line in lines:
            self._out.line(line)
        if drafted.ids != alone.ids and self._pair.dtype == "float32":
            raise IdsDifferError("the ids differ in float32, which must not be: please report it")

    def tell_what_next(self) -> None:
        """What to try now."""
        lines = demo_text.next_lines(self._pair)
        self._say(9, "What to try next", lines)

    def _say(self, step: int, title: str, lines: list[str] | None = None) -> None:
        self._guide.line(f"\n{step}. {title}")
        for line in lines or ():
            self._guide.line(f"  {line}")
