"""Measurements as lines of JSON, written as they come and read back. Knows files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.client import SpeculationFigures, TimeFigures


class Record:
    """A file that grows by a line for each measurement; a benchmark that is stopped leaves all that
    it measured."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, FileExistsError among them: an older record is not written over."""
        self._file = path.open("x", encoding="utf-8")
        self._path = path
        self.lines = 0

    def add(self, measurement: Measurement) -> None:
        """On disk when this returns, as far as the system goes."""
        self._file.write(as_line(measurement))
        self._file.flush()
        self.lines += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if not self.lines:
            # Nothing that the next benchmark must not write over.
            self._path.unlink(missing_ok=True)


def as_line(measurement: Measurement) -> str:
    """With its line break."""
    return json.dumps(asdict(measurement), ensure_ascii=False) + "\n"


def read_record(path: Path) -> Iterator[Measurement]:
    """What a benchmark wrote. Raises OSError, or ValueError for what is no record."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            yield _measurement(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number} is no measurement: {error}") from error


def _measurement(item: Mapping[str, Any]) -> Measurement:
    reply = dict(item["reply"])
    figures, time = reply.pop("speculation"), reply.pop("time")
    return Measurement(
        **{
            **item,
            "reply": Reply(
                **_tuples(reply),
                speculation=None if figures is None else SpeculationFigures(**_tuples(figures)),
                time=None if time is None else TimeFigures(**time),
            ),
        }
    )


def _tuples(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in item.items()
    }
