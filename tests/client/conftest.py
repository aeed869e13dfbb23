"""What the tests of the client share: an orchestrator that is a script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scripted_orchestrator import ScriptedOrchestrator


@pytest.fixture
def orchestrator() -> Iterator[ScriptedOrchestrator]:
    with ScriptedOrchestrator() as scripted:
        yield scripted
