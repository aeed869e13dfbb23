"""One running set of services that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitoring.metrics_page import Scrape
from tests.monitoring.watched_services import Watched, watched_services


@pytest.fixture(scope="package")
def watched(llama: Path, gpt2: Path) -> Iterator[Watched]:
    """A Llama for a target, a GPT-2 for a draft, after the requests of `send_all`."""
    with watched_services(llama, gpt2) as watched:
        yield watched


@pytest.fixture(scope="package")
def scrape(watched: Watched) -> Scrape:
    return watched.scrape
