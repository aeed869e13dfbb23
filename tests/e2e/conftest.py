"""One running set of services that the tests of this folder share where they harm nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import RunningServices, running_services


@pytest.fixture(scope="session")
def services(llama: Path, gpt2: Path) -> Iterator[RunningServices]:
    """A Llama for a target, a GPT-2 for a draft."""
    with running_services(llama, gpt2) as running:
        yield running
