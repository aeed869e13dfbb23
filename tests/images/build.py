"""Builds a target of the Dockerfile in a folder, with the commands that stand in it.

A folder is no container: an environment of its own stands for the Python of the base image, all
stages share what they install, and what only changes the system around it is left out. All else is
carried out as it is written, so a command that cannot be carried out here fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.images.context import copy_context
from tests.images.dockerfile import (
    DOCKERFILE,
    ROOT,
    Instruction,
    Stage,
    environment,
    inherited,
    last,
    lineage,
    read_stages,
)

OF_THE_SYSTEM = ("groupadd ", "install --directory ", "python -m compileall ")
MINUTES = 20


@dataclass(frozen=True, slots=True)
class Image:
    """What was built: where, and what its instructions say."""

    root: Path
    instructions: tuple[Instruction, ...]

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which its processes run."""
        before = {"PATH": f"{self.root}/usr/local/bin:{self.root}/base/bin:/usr/bin:/bin"}
        told = environment(self.instructions, before)
        return {name: self.placed(value) for name, value in told.items()}

    @property
    def entrypoint(self) -> list[str]:
        return last(self.instructions, "ENTRYPOINT").words

    @property
    def health_check(self) -> list[str]:
        return last(self.instructions, "HEALTHCHECK").words

    def placed(self, text: str) -> str:
        """With the folder before what an image has at its root."""
        return text.replace("/opt/uag", f"{self.root}/opt/uag")

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.variables | variables,
            cwd=self.root / "opt",
            capture_output=True,
            text=True,
            check=False,
        )


def build(target: str, root: Path, *, around: Mapping[str, str] | None = None) -> Image:
    """Builds in the empty folder `root`. `around`: variables of the builder, as pip reads them."""
    stages = read_stages(DOCKERFILE.read_text(encoding="utf-8"))
    image = Image(root, inherited(stages, target))
    copy_context(ROOT, root / "context")
    # As the base image has it: a Python with pip, and nothing else.
    subprocess.run([sys.executable, "-m", "venv", root / "base"], check=True)
    for stage in (stages["requirements"], stages["wheel"], *lineage(stages, target)):
        workplace = root / "stages" / stage.name
        workplace.mkdir(parents=True)
        for instruction in stage.instructions:
            if instruction.keyword == "COPY":
                _copy_in(instruction, workplace, image)
            elif instruction.keyword == "RUN" and not instruction.command.startswith(OF_THE_SYSTEM):
                with _mounted(instruction, workplace, root):
                    _run(
                        image.placed(instruction.command),
                        workplace,
                        stage,
                        {**image.variables, **(around or {})},
                    )
    return image


def _copy_in(item: Instruction, workplace: Path, image: Image) -> None:
    *_, source, place = item.text.split()
    if item.document:
        script = image.root / place.lstrip("/")
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(image.placed(item.document), encoding="utf-8")
        script.chmod(0o755)
    else:
        _copy(image.root / "context" / source, workplace / place)


def _copy(source: Path, place: Path) -> None:
    """As COPY does: of a folder, what is in it."""
    if source.is_dir():
        shutil.copytree(source, place, dirs_exist_ok=True)
    else:
        shutil.copy2(source, place)


@contextmanager
def _mounted(item: Instruction, workplace: Path, root: Path) -> Iterator[None]:
    """What a step mounts is there for that step alone."""
    places = []
    for mount in item.mounts:
        if mount["type"] == "bind":
            there = root / "stages" / mount["from"] if "from" in mount else root / "context"
            places.append(workplace / Path(mount["target"]).relative_to("/build"))
            _copy(there / mount["source"].removeprefix("/build/"), places[-1])
    yield
    for place in places:
        shutil.rmtree(place) if place.is_dir() else place.unlink()


def _run(command: str, workplace: Path, stage: Stage, variables: dict[str, str]) -> None:
    arguments = [item.text for item in stage.instructions if item.keyword == "ARG"]
    defaults = dict(argument.split("=", 1) for argument in arguments)
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=workplace,
        env=_of_pip() | defaults | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * MINUTES,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def _of_pip() -> dict[str, str]:
    """Which index, proxy and certificates pip uses is the builder's affair."""
    wanted = ("PIP_", "SSL_", "HOME", "HTTP", "http", "no_proxy", "NO_PROXY", "XDG_")
    return {name: value for name, value in os.environ.items() if name.startswith(wanted)}
