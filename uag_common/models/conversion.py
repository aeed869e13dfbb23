"""Has a GGUF file converted by a process of its own, and puts the result in place at one stroke.

Knows how that process is called and what it leaves; must not import torch. A conversion that dies
(or is killed) leaves a hidden folder that the next one clears away, never half a model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import uag_common
from uag_common.models import manifest
from uag_common.models.errors import ConversionError
from uag_common.models.reports import Progress

CONVERTER = "uag_common.engine.gguf"


def convert(
    gguf: Path, gguf_sha256: str, source: str, destination: Path, lock: int, progress: Progress
) -> None:
    """Make the model directory `destination` from `gguf`, replacing what may be there.

    The caller holds the lock of `destination`, of which `lock` is the descriptor; the process
    inherits it. Raises ConversionError with the last thing that the process said.
    """
    partial = destination.with_name(f".{destination.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _run(gguf, partial, lock, progress)
        progress.note("noting down what was written")
        manifest.write(manifest.describe(partial, source, gguf_sha256), partial)
        _put_in_place(partial, destination)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run(gguf: Path, output: Path, lock: int, progress: Progress) -> None:
    command = [sys.executable, "-m", CONVERTER, str(gguf), str(output)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as complaints:
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env=_environment(),
            pass_fds=(lock,),
        ) as process:
            code = _follow(process, progress.note)
        if code != 0:
            raise ConversionError(f"{gguf} cannot be converted: {_reason(complaints, code)}")


def _follow(process: subprocess.Popen[str], note: Callable[[str], None]) -> int:
    try:
        for line in process.stdout or ():
            note("  " + line.rstrip())
        return process.wait()
    except BaseException:
        # Only an interrupt gets here; the process must not go on without us.
        process.kill()
        raise


def _environment() -> dict[str, str]:
    """The process finds this very package, also from a checkout, and opens no connection."""
    root = str(Path(uag_common.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


def _reason(complaints: IO[str], code: int) -> str:
    complaints.seek(0)
    lines = [line.strip() for line in complaints.read().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if code < 0:
        return f"it was ended by signal {-code} (too little memory ends it by signal 9)"
    if last.startswith("ModuleNotFoundError"):
        return f"{last}: install the engine with `pip install 'uag[engine]'`"
    return last or f"exit code {code}"


def _put_in_place(partial: Path, destination: Path) -> None:
    old = destination.with_name(f".{destination.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if destination.exists():
        destination.rename(old)
    partial.rename(destination)
    shutil.rmtree(old, ignore_errors=True)
