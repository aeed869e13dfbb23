"""A Dockerfile as its stages and their instructions. Knows the syntax that ours uses, no engine."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"

_HEREDOC = re.compile(r'<<"?(\w+)"?')


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction on one line, and the text that stands under it if it ends in `<<NAME`."""

    keyword: str
    text: str
    document: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(word for word in self.text.split() if word.startswith("--"))

    @property
    def mounts(self) -> tuple[dict[str, str], ...]:
        """Of a RUN, what each `--mount` says."""
        told = [flag.removeprefix("--mount=") for flag in self.flags if "--mount=" in flag]
        return tuple(dict(pair.split("=", 1) for pair in mount.split(",")) for mount in told)

    @property
    def command(self) -> str:
        """The text without the flags that stand before it."""
        return re.sub(r"^(--\S+\s+)+", "", self.text)

    @property
    def words(self) -> list[str]:
        """Of an instruction in exec form."""
        _, bracket, rest = self.text.partition("[")
        words: list[str] = json.loads(bracket + rest)
        return words


@dataclass(frozen=True, slots=True)
class Stage:
    """What stands from one FROM to the next."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]


def read_stages(text: str) -> dict[str, Stage]:
    """The stages by name, in order."""
    stages: dict[str, Stage] = {}
    for instruction in _instructions(iter(text.splitlines())):
        if instruction.keyword == "FROM":
            base, _, name = instruction.text.partition(" AS ")
            stages[name] = Stage(name, base, ())
        else:
            stage = next(reversed(stages.values()))
            stages[stage.name] = Stage(stage.name, stage.base, (*stage.instructions, instruction))
    return stages


def lineage(stages: dict[str, Stage], name: str) -> tuple[Stage, ...]:
    """A stage and those that it is built on, the first one first."""
    stage = stages[name]
    before = lineage(stages, stage.base) if stage.base in stages else ()
    return (*before, stage)


def inherited(stages: dict[str, Stage], name: str) -> tuple[Instruction, ...]:
    """All instructions that made a stage."""
    return tuple(item for stage in lineage(stages, name) for item in stage.instructions)


def read_image(target: str) -> tuple[Instruction, ...]:
    """All instructions that make our image of that name."""
    return inherited(read_stages(DOCKERFILE.read_text(encoding="utf-8")), target)


def last(instructions: tuple[Instruction, ...], keyword: str) -> Instruction:
    """The one that holds."""
    return [item for item in instructions if item.keyword == keyword][-1]


def environment(instructions: tuple[Instruction, ...], before: dict[str, str]) -> dict[str, str]:
    """What the ENV instructions make of the variables `before`."""
    variables = dict(before)
    for item in instructions:
        for pair in shlex.split(item.text) if item.keyword == "ENV" else ():
            name, _, value = pair.partition("=")
            variables[name] = re.sub(r"\$(\w+)", lambda found: variables[found[1]], value)
    return variables


def _instructions(lines: Iterator[str]) -> Iterator[Instruction]:
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        joined = line
        while joined.endswith("\\"):
            joined = joined[:-1] + next(lines)
        keyword, _, text = joined.partition(" ")
        document = ""
        if heredoc := _HEREDOC.search(text):
            document = "".join(f"{line}\n" for line in iter(lines.__next__, heredoc[1]))
        yield Instruction(keyword, text.strip(), document)
