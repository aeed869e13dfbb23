"""What a benchmark leaves behind and says at its end. Knows files and screens."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version

from orchestrator.bench.heading import Heading
from orchestrator.bench.machine import Machine
from orchestrator.bench.record import Record
from orchestrator.bench.report import PairReport, Report
from orchestrator.bench.report_files import RECORD, write
from orchestrator.cli.bench_flags import Choices
from orchestrator.cli.bench_pair import threads
from orchestrator.cli.terminal import Screen
from uag_common.errors import UagError


class OlderRecordError(UagError):
    """The folder has the record of an earlier benchmark."""


class IdsDifferError(UagError):
    """An answer was not what the target alone says, and not for rounding: a bug."""


def heading(choices: Choices, notes: Sequence[str]) -> Heading:
    """To be taken before the first request."""
    return Heading(
        version=version("uag"),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=Machine.here(),
        threads=threads(),
        wishes=choices.wishes,
        prompts=choices.prompts,
        notes=tuple(notes),
    )


@contextmanager
def recording(choices: Choices, screen: Screen) -> Iterator[Record]:
    """Makes the folder. An interrupted benchmark tells where its measurements are. Raises
    OlderRecordError and OSError."""
    made = not choices.out.exists()
    choices.out.mkdir(parents=True, exist_ok=True)
    path = choices.out / RECORD
    try:
        record = Record(path)
    except FileExistsError as error:
        raise OlderRecordError(
            f"{path} is of an earlier benchmark: choose another --out, or move it away"
        ) from error
    try:
        with record:
            yield record
    except KeyboardInterrupt:
        where = f"what was measured is in {path}" if record.lines else "nothing was measured"
        screen.line(f"stopped; {where}")
        raise
    finally:
        if made and not record.lines:
            # A failed start leaves no trace.
            with suppress(OSError):
                choices.out.rmdir()


def finish(heading: Heading, pairs: Sequence[PairReport], choices: Choices, screen: Screen) -> None:
    """Writes the files and prints the verdicts. Raises OSError, and IdsDifferError, with the
    files written, where ids are wrong."""
    report = Report(heading, tuple(pairs))
    written = write(report, choices.out)
    out = Screen.of(sys.stdout)
    for pair in pairs:
        out.line(pair.title)
        for sentence in pair.verdict:
            out.line(f"  {sentence}")
    if written.missing is not None:
        screen.line(written.missing)
    for path in (*written.files, choices.out / RECORD):
        screen.line(f"wrote {path}")
    if wrong := list(report.wrong_ids()):
        raise IdsDifferError(f"ids differ which must not, please report it: {'; '.join(wrong)}")
