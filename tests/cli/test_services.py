"""Which services are run, by flags, environment and defaults."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from functools import partial

import pytest

from orchestrator.cli.services import (
    DEFAULT_PAIR,
    Pair,
    Services,
    add_service_flags,
    choose_pair,
    choose_services,
    shared_threads,
)
from uag_common.errors import StartError
from uag_common.models import catalogue


def chosen(arguments: list[str], environ: dict[str, str]) -> tuple[Pair, Services]:
    parser = ArgumentParser()
    add_service_flags(parser)
    flags = parser.parse_args(arguments)
    pair = choose_pair(flags, DEFAULT_PAIR, environ)
    return pair, choose_services(flags, pair, environ)


def test_defaults() -> None:
    pair, services = chosen([], {})
    assert (pair.target, pair.draft) == (catalogue.DEFAULT_TARGET, catalogue.DEFAULT_DRAFT)
    assert [spec.address for spec in services] == [
        "127.0.0.1:50051",
        "127.0.0.1:50052",
        "127.0.0.1:50050",
    ]
    for_people = {"log_format": "text"}
    assert services.draft.settings == {"model": pair.draft, **shared_threads({}), **for_people}
    assert services.orchestrator.settings == {
        "draft": "127.0.0.1:50051",
        "verify": "127.0.0.1:50052",
        **for_people,
    }


def test_the_environment_wins_over_defaults() -> None:
    environ = {
        "UAG_DRAFT_MODEL": "./mine",
        "UAG_VERIFY_LISTEN": "0.0.0.0:7000",
        "UAG_VERIFY_MODEL": "org/name",
    }
    pair, services = chosen([], environ)
    assert (pair.draft, pair.target) == ("./mine", "org/name")
    assert services.verify.address == "0.0.0.0:7000"
    assert services.orchestrator.settings["verify"] == "127.0.0.1:7000"


def test_who_wants_a_log_for_machines_gets_it() -> None:
    _, services = chosen([], {"UAG_VERIFY_LOG_FORMAT": "json"})
    assert "log_format" not in services.verify.settings
    assert services.draft.settings["log_format"] == "text"
    assert services.orchestrator.settings["log_format"] == "text"


def test_flags_win_over_the_environment() -> None:
    environ = {"UAG_DRAFT_MODEL": "./mine", "UAG_DRAFT_LISTEN": "0.0.0.0:7000"}
    flags = ["--draft", "other", "--draft-port", "7001", "--dtype", "bfloat16"]
    pair, services = chosen(flags, environ)
    assert pair.draft == "other"
    assert services.draft.address == "0.0.0.0:7001"
    assert services.draft.settings["model"] == "other"
    assert services.draft.settings["dtype"] == "bfloat16"
    assert services.verify.settings["dtype"] == "bfloat16"


def test_two_models_never_take_more_threads_than_there_are_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cores, threads in ((1, "1"), (2, "1"), (16, "8")):
        monkeypatch.setattr("os.cpu_count", partial(int, cores))
        assert shared_threads({}) == {"threads": threads}
    for variable in ("UAG_DRAFT_THREADS", "UAG_VERIFY_THREADS", "OMP_NUM_THREADS"):
        assert shared_threads({variable: "3"}) == {}


def test_a_taken_port_names_the_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        _, services = chosen(["--port", "0", "--draft-port", "0", "--verify-port", port], {})
        with pytest.raises(StartError, match=f"{port}.*another port with --verify-port"):
            services.check_ports()
