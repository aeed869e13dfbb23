"""A real Prometheus reads the real pages: every panel has something to show, every rule can be
evaluated, and no alert is raised by services that are well."""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.monitoring.expressions import alerts, dashboards, recordings
from tests.monitoring.prometheus import Prometheus, running_prometheus
from tests.monitoring.watched_services import Watched, send_all

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None,
    reason="no prometheus on the PATH (Debian: apt install prometheus)",
)

WINDOW = "20s"
"""Of rates. Scrapes come each second, and some are lost where the machine is busy."""

MOST_SECONDS = 40


@pytest.fixture(scope="module")
def prometheus(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """While requests of all kinds are sent, until every panel has something to show."""
    folder = tmp_path_factory.mktemp("prometheus")
    with running_prometheus(watched.pages, folder) as running, requests_sent(watched):
        until = time.monotonic() + MOST_SECONDS
        while silent(running) and time.monotonic() < until:
            time.sleep(1)
        yield running


@contextmanager
def requests_sent(watched: Watched) -> Iterator[None]:
    stopped = threading.Event()

    def send() -> None:
        with watched.client() as client:
            while not stopped.is_set():
                send_all(client)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        stopped.set()
        sending.join()


def silent(prometheus: Prometheus) -> list[str]:
    """Queries of panels that give no number."""
    return [
        query.place
        for dashboard in dashboards()
        for query in dashboard.queries
        if not any(map(math.isfinite, prometheus.values(dashboard.filled(query.text, WINDOW))))
    ]


def test_each_query_of_a_panel_gives_numbers(prometheus: Prometheus) -> None:
    assert silent(prometheus) == []


def test_each_rule_can_be_evaluated(prometheus: Prometheus) -> None:
    rules = prometheus.rules()
    assert len(rules) == len(alerts()) + len(recordings())
    assert not [rule for rule in rules if rule["health"] == "err"]


def test_services_that_are_well_raise_no_alert(prometheus: Prometheus) -> None:
    assert prometheus.values("max_over_time(up[1m])") == [1, 1, 1]
    assert not prometheus.values('ALERTS{alertstate="firing"}')
