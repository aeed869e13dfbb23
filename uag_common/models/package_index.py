"""Asks pip where a wheel lies. Knows pip's installation report, no address of any registry.

pip is asked, and not a registry, because the user's own index, mirror, proxy, credentials and
certificates are set up there. Nothing is installed and, on an index that serves metadata apart,
no wheel is fetched.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from uag_common.models.catalogue import Wheel
from uag_common.models.errors import DownloadError

PIP_REPORT = (
    "-m",
    "pip",
    "--no-input",
    "--disable-pip-version-check",
    "install",
    "--dry-run",
    "--no-deps",
    "--ignore-installed",
    "--only-binary=:all:",
    "--quiet",
    "--report=-",
)


def wheel_urls(wheels: Sequence[Wheel]) -> tuple[str, ...]:
    """The address of each wheel, in order; http, https or file. Raises DownloadError."""
    command = [sys.executable, *PIP_REPORT, *(wheel.requirement for wheel in wheels)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise DownloadError(_explain(answer.stderr, wheels))
    urls = _urls(json.loads(answer.stdout))
    return tuple(urls[_normalised(wheel.package)] for wheel in wheels)


def _urls(report: dict[str, Any]) -> dict[str, str]:
    return {
        _normalised(item["metadata"]["name"]): str(item["download_info"]["url"])
        for item in report["install"]
    }


def _normalised(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _explain(stderr: str, wheels: Sequence[Wheel]) -> str:
    if "No module named pip" in stderr:
        return (
            f"{sys.executable} has no pip, which knows where packages lie: "
            f"run `{sys.executable} -m ensurepip`"
        )
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR:")]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else stderr.strip()[-300:]
    wanted = " ".join(wheel.requirement for wheel in wheels)
    return f"pip finds no {wanted} ({reason}): check the network and pip's index settings"
