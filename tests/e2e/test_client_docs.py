"""What the page on the client says: its programs run, its tables are whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import orchestrator.client
from orchestrator.client import ClientError, Options
from orchestrator.client.fields import PATHS
from tests.services import RunningServices

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| .* \| `([\w.]+)` \|$", re.MULTILINE)


def test_its_programs_run(services: RunningServices, capsys: pytest.CaptureFixture[str]) -> None:
    # A block that is indented goes on with the one before it.
    program = "\n".join(BLOCKS).replace("localhost:50050", services.orchestrator)
    exec(compile(program, "client.md", "exec"), {})  # noqa: S102 - our own page
    said = capsys.readouterr().out
    assert "FinishReason." in said
    assert "The capital of France is" in said


def test_every_keyword_is_told_with_its_field() -> None:
    assert dict(ROW.findall(PAGE)) == dict(PATHS)
    assert PATHS.keys() == Options.__annotations__.keys()


def test_every_error_is_told() -> None:
    for name in orchestrator.client.__all__:
        kind = getattr(orchestrator.client, name)
        if isinstance(kind, type) and issubclass(kind, ClientError):
            assert f"`{name}`" in PAGE
