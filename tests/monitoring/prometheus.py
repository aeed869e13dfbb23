"""A real Prometheus that reads the pages of running services and our rules. Knows its HTTP API."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring.expressions import ALERTS
from tests.services import free_address


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running one."""

    address: str

    def values(self, query: str) -> list[float]:
        """What the query gives now, one value a series."""
        result = self._ask("query", query=query)["result"]
        return [float(series["value"][1]) for series in result]

    def rules(self) -> list[dict[str, Any]]:
        """All rules as it has them, with how their last evaluation went."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ask(self, what: str, **parameters: str) -> dict[str, Any]:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(
            f"http://{self.address}/api/v1/{what}?{query}", timeout=10
        ) as got:
            data: dict[str, Any] = json.load(got)["data"]
        return data

    def wait_until_ready(self, process: subprocess.Popen[bytes], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=1):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise TimeoutError(f"Prometheus did not become ready (exit code {process.poll()})")


@contextmanager
def running_prometheus(pages: Mapping[str, str], folder: Path) -> Iterator[Prometheus]:
    """Reads each second the pages, which are given by role, and keeps what it has in `folder`."""
    configuration = folder / "prometheus.yml"
    configuration.write_text(yaml.safe_dump(_configuration(pages)), encoding="utf-8")
    address = free_address()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [  # noqa: S607 - whichever the developer has
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            running = Prometheus(address)
            running.wait_until_ready(process)
            yield running
        finally:
            process.terminate()
            process.wait(timeout=20)


def _configuration(pages: Mapping[str, str]) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {"job_name": f"uag-{role}", "static_configs": [{"targets": [page]}]}
            for role, page in pages.items()
        ],
    }
