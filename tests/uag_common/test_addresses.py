"""Where services listen and where they are reached."""

from __future__ import annotations

import os
import socket

import pytest

from uag_common.addresses import (
    BadAddressError,
    answers,
    check_free,
    reachable_form,
    split,
    with_real_port,
)
from uag_common.errors import StartError


def test_split() -> None:
    assert split("example.org:50050") == ("example.org", 50050)
    assert split("[::1]:7") == ("[::1]", 7)


@pytest.mark.parametrize(
    "text", ["", "host", ":1", "host:", "host:x", "host:65536", "::1:7", "h:-1"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(BadAddressError, match="is no HOST:PORT"):
        split(text)


def test_port_0_becomes_a_free_one() -> None:
    address = with_real_port("127.0.0.1:0")
    assert split(address)[1] > 0
    check_free(address, "")
    assert not answers(address)


def test_a_given_port_stays() -> None:
    assert with_real_port("127.0.0.1:4321") == "127.0.0.1:4321"


def test_a_server_on_all_interfaces_is_reached_here() -> None:
    assert reachable_form("0.0.0.0:5") == "127.0.0.1:5"
    assert reachable_form("[::]:5") == "[::1]:5"
    assert reachable_form("example.org:5") == "example.org:5"


def test_a_taken_port_names_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert answers(address)
        with pytest.raises(StartError, match=rf"{address} .*pid {os.getpid()}\); do this"):
            check_free(address, "do this")
