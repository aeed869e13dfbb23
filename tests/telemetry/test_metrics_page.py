"""The page of metrics: what it answers, and that its readers can harm nobody."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client import Counter

from uag_common.errors import StartError
from uag_common.telemetry.metrics import MOST_CONNECTIONS, MetricsPage, new_registry


@pytest.fixture
def page() -> Iterator[MetricsPage]:
    registry = new_registry("test")
    Counter("uag_things", "Things.", ("kind",), registry=registry).labels("a").inc(3)
    page = MetricsPage("127.0.0.1:0", registry, "UAG_TEST_METRICS_LISTEN")
    yield page
    page.close()


def read(page: MetricsPage, path: str = "/metrics") -> str:
    with urlopen(f"http://127.0.0.1:{page.port}{path}", timeout=5) as answer:
        text: str = answer.read().decode()
        return text


@pytest.mark.parametrize("path", ["/metrics", "/metrics?name[]=uag_things_total"])
def test_each_sample_has_its_role(page: MetricsPage, path: str) -> None:
    text = read(page, path)
    assert 'uag_things_total{kind="a",role="test"} 3.0' in text
    samples = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all('role="test"' in line for line in samples)
    assert any(line.startswith("process_resident_memory_bytes") for line in samples)


@pytest.mark.parametrize("path", ["/", "/debug", "/metrics/", "/../../etc/passwd"])
def test_there_is_no_other_page(page: MetricsPage, path: str) -> None:
    with pytest.raises(HTTPError, match="404"):
        read(page, path)


def connect(page: MetricsPage) -> socket.socket:
    return socket.create_connection(("127.0.0.1", page.port), timeout=10)


def test_who_connects_and_says_nothing_is_let_go(page: MetricsPage) -> None:
    began = time.monotonic()
    with connect(page) as silent:
        assert silent.recv(1) == b""
    assert time.monotonic() - began > 1
    assert "uag_things_total" in read(page)


def test_connections_are_few_and_places_come_back(page: MetricsPage) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(connect(page))
        with connect(page) as refused:
            assert refused.recv(1) == b""
    deadline = time.monotonic() + 10
    while True:
        try:
            assert "uag_things_total" in read(page)
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize("listen", ["9464", "127.0.0.1:99999", "nowhere.invalid:9464"])
def test_an_address_that_cannot_be_had_names_the_setting(listen: str) -> None:
    with pytest.raises(StartError, match="UAG_TEST_METRICS_LISTEN"):
        MetricsPage(listen, new_registry("test"), "UAG_TEST_METRICS_LISTEN")


def test_a_port_that_is_taken_names_the_setting(page: MetricsPage) -> None:
    with pytest.raises(StartError, match="choose another address in UAG_TEST_METRICS_LISTEN"):
        MetricsPage(f"127.0.0.1:{page.port}", new_registry("test"), "UAG_TEST_METRICS_LISTEN")
