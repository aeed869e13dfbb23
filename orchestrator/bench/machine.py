"""The machine and the libraries that a benchmark ran on. Reads /proc and asks the driver's tool."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
DRIVER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Machine:
    """`accelerators`: the names that NVIDIA's driver tells; empty where there is none. A version is
    None where the library is not installed."""

    cpu: str
    cores: int
    memory_bytes: int
    accelerators: tuple[str, ...]
    system: str
    python: str
    torch: str | None
    transformers: str | None

    @classmethod
    def here(cls) -> Machine:
        """This one."""
        return cls(
            cpu=_cpu(CPUINFO),
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            accelerators=_accelerators(),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            python=platform.python_version(),
            torch=_version("torch"),
            transformers=_version("transformers"),
        )


def _cpu(cpuinfo: Path) -> str:
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _accelerators() -> tuple[str, ...]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=DRIVER_SECONDS, check=True
        ).stdout
    except (subprocess.SubprocessError, OSError):
        # A driver that does not answer; the report then says that none is known.
        return ()
    return tuple(line.strip() for line in told.splitlines() if line.strip())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
