"""What a scanner of policies says of the manifests; what is accepted stands in a file with reasons.

checkov pins too many packages to share an environment with ours: it is run as a program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.rendering import ROOT, Rendered

ACCEPTED = Path(__file__).parent / "accepted_findings.yaml"
OWN_ENVIRONMENT = ROOT / ".venv" / "scan" / "bin" / "checkov"
Finding = tuple[str, str]
"""The check, and RENDERING/KIND.NAME."""


@pytest.fixture(scope="session")
def checkov() -> Path:
    """Without it: a failure where CI is set, else a skip."""
    if OWN_ENVIRONMENT.is_file():
        return OWN_ENVIRONMENT
    if found := shutil.which("checkov"):
        return Path(found)
    if os.environ.get("CI"):
        pytest.fail("checkov is missing")
    pytest.skip("checkov is missing: `make test` installs it")


def test_nothing_is_found_but_what_is_accepted(
    renderings: dict[str, Rendered], checkov: Path, tmp_path: Path
) -> None:
    for name, rendered in renderings.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(rendered.manifests))
    found = _findings(_scan(checkov, tmp_path))
    accepted: list[dict[str, str]] = yaml.safe_load(ACCEPTED.read_text())
    new = {item for item in found if not any(_covers(rule, item) for rule in accepted)}
    assert not new
    unused = [rule for rule in accepted if not any(_covers(rule, item) for item in found)]
    assert not unused


def _scan(checkov: Path, folder: Path) -> dict[str, Any]:
    command = [
        str(checkov),
        "--directory",
        str(folder),
        "--framework",
        "kubernetes",
        "--skip-download",
    ]
    # A proxy that leads nowhere: what is asked of the network fails at once.
    offline = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9", "LOG_LEVEL": "ERROR"}
    done = subprocess.run(
        [*command, "--compact", "--quiet", "--output", "json"],
        capture_output=True,
        text=True,
        check=False,
        env=offline,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 0
    return dict(report)


def _findings(report: dict[str, Any]) -> set[Finding]:
    return {
        (item["check_id"], f"{Path(item['file_path']).stem}/{_short(item['resource'])}")
        for item in report["results"]["failed_checks"]
    }


def _short(resource: str) -> str:
    """KIND.NAME of KIND.NAMESPACE.NAME."""
    kind, _, name = resource.split(".", 2)
    return f"{kind}.{name}"


def _covers(rule: dict[str, str], finding: Finding) -> bool:
    return rule["check"] == finding[0] and fnmatch(finding[1], rule["where"])
