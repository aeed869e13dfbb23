"""What an application loads with the client, and what the two clients have in common."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import orchestrator.client
from orchestrator.client import AnswerStream, AsyncAnswerStream, AsyncClient, Client

HEAVY = (
    "torch",
    "transformers",
    "tokenizers",
    "jinja2",
    "rich",
    "numpy",
    "uag_common.rpc.server",
    "uag_common.engine",
)


def test_importing_it_loads_nothing_heavy_and_no_other_part() -> None:
    code = "import sys, orchestrator.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "orchestrator.client" in loaded
    assert not set(HEAVY) & set(loaded)
    parts = {name for name in loaded if name.startswith("orchestrator.")}
    assert not {name for name in parts if not name.startswith("orchestrator.client")}


def test_all_that_it_offers_is_there() -> None:
    offered = orchestrator.client.__all__
    assert offered == sorted(offered)
    assert all(hasattr(orchestrator.client, name) for name in offered)


@pytest.mark.parametrize(
    ("one", "other", "own"),
    [(Client, AsyncClient, {"responses"}), (AnswerStream, AsyncAnswerStream, set())],
)
def test_the_twins_take_the_same(one: type, other: type, own: set[str]) -> None:
    mine = {name for name in vars(one) if not name.startswith("_")}
    theirs = {name for name in vars(other) if not name.startswith("_")}
    assert mine - own == theirs
    for name in (*theirs, "__init__") if one is Client else theirs:
        taken = inspect.signature(getattr(one, name)).parameters
        assert inspect.signature(getattr(other, name)).parameters == taken
