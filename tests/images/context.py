"""What a builder is given of a folder: all that .dockerignore lets through."""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatchcase
from pathlib import Path


def read_patterns(root: Path) -> tuple[str, ...]:
    lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def is_ignored(path: Path, patterns: tuple[str, ...]) -> bool:
    """Whether the last pattern that fits `path`, or a folder that it lies in, leaves it out."""
    ignored = False
    for pattern in patterns:
        wanted = pattern.removeprefix("!")
        if any(_fits(place, wanted) for place in (path, *path.parents)):
            ignored = wanted == pattern
    return ignored


def copy_context(root: Path, destination: Path) -> None:
    """Copies what is not ignored. A folder that is ignored holds nothing that is not."""
    patterns = read_patterns(root)
    for folder, folders, files in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = [name for name in folders if not is_ignored(here / name, patterns)]
        for name in files:
            if not is_ignored(here / name, patterns):
                (destination / here).mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / here / name, destination / here / name)


def _fits(place: Path, pattern: str) -> bool:
    """A star stands for a part of one name; `**/` at the beginning for any folder."""
    if pattern.startswith("**/"):
        return fnmatchcase(place.name, pattern.removeprefix("**/"))
    wanted = Path(pattern).parts
    return len(wanted) == len(place.parts) and all(map(fnmatchcase, place.parts, wanted))
