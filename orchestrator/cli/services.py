"""The three services of a pair as `uag up` and `uag demo` run them: addresses, settings, order.

A flag wins over the service's own environment variable, which wins over the default.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.cli.supervisor import Child, ServiceSpec, Supervisor
from orchestrator.draft_client import DRAFT_SERVICE
from uag_common.addresses import BadAddressError, check_free, split, with_real_port
from uag_common.models import catalogue

ORCHESTRATOR_ADDRESS = "127.0.0.1:50050"
DRAFT_ADDRESS = "127.0.0.1:50051"
VERIFY_ADDRESS = "127.0.0.1:50052"
DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class Pair:
    """The two models of a pair, as a user names them, and their number type ("auto" included)."""

    draft: str
    target: str
    dtype: str


DEFAULT_PAIR = Pair(catalogue.DEFAULT_DRAFT, catalogue.DEFAULT_TARGET, "auto")


@dataclass(frozen=True, slots=True)
class Services:
    """What is to run."""

    draft: ServiceSpec
    verify: ServiceSpec
    orchestrator: ServiceSpec

    def check_ports(self) -> None:
        """Raises StartError for the first port that is taken, and names who has it."""
        for spec, flag in zip(self, ("--draft-port", "--verify-port", "--port"), strict=True):
            check_free(spec.address, f"stop it, or choose another port with {flag} (0: a free one)")

    def __iter__(self) -> Iterator[ServiceSpec]:
        return iter((self.draft, self.verify, self.orchestrator))


@dataclass(frozen=True, slots=True)
class Ready:
    """A service that serves, after so many seconds from the start of all."""

    spec: ServiceSpec
    seconds: float


def add_service_flags(parser: ArgumentParser) -> None:
    """The flags that say what to run and where."""
    parser.add_argument(
        "--target", metavar="MODEL", help="the model that decides every token of an answer"
    )
    parser.add_argument("--draft", metavar="MODEL", help="the model that guesses ahead")
    parser.add_argument("--dtype", choices=DTYPES, help="number type of both models")
    for flag, service in (
        ("--port", "the orchestrator"),
        ("--draft-port", "the draft service"),
        ("--verify-port", "the verify service"),
    ):
        parser.add_argument(
            flag, type=_port, metavar="N", help=f"port of {service} (0: a free one)"
        )


def choose_pair(flags: Namespace, default: Pair, environ: Mapping[str, str] = os.environ) -> Pair:
    """The models that the flags, the environment or the defaults name."""
    return Pair(
        draft=flags.draft or environ.get("UAG_DRAFT_MODEL") or default.draft,
        target=flags.target or environ.get("UAG_VERIFY_MODEL") or default.target,
        dtype=flags.dtype or default.dtype,
    )


def choose_services(
    flags: Namespace, pair: Pair, environ: Mapping[str, str] = os.environ
) -> Services:
    """Raises BadAddressError for a UAG_..._LISTEN that is no address."""
    draft_at = _listen(flags.draft_port, environ, "UAG_DRAFT_LISTEN", DRAFT_ADDRESS)
    verify_at = _listen(flags.verify_port, environ, "UAG_VERIFY_LISTEN", VERIFY_ADDRESS)
    at = _listen(flags.port, environ, "UAG_ORCHESTRATOR_LISTEN", ORCHESTRATOR_ADDRESS)
    draft = _spec(
        "draft_service", "UAG_DRAFT_", draft_at, _model_settings(pair.draft, pair, environ), environ
    )
    verify = _spec(
        "verify_service",
        "UAG_VERIFY_",
        verify_at,
        _model_settings(pair.target, pair, environ),
        environ,
    )
    peers = {"draft": draft.reached_at, "verify": verify.reached_at}
    return Services(draft, verify, _spec("orchestrator", "UAG_ORCHESTRATOR_", at, peers, environ))


def _spec(
    module: str,
    prefix: str,
    address: str,
    settings: Mapping[str, str],
    environ: Mapping[str, str],
) -> ServiceSpec:
    """Its log is for the people who run it, unless the environment says otherwise."""
    log = {} if f"{prefix}LOG_FORMAT" in environ else {"log_format": "text"}
    return ServiceSpec(module, prefix, address, {**settings, **log})


def _model_settings(model: str, pair: Pair, environ: Mapping[str, str]) -> dict[str, str]:
    dtype = {} if pair.dtype == "auto" else {"dtype": pair.dtype}
    return {"model": model, **dtype, **shared_threads(environ)}


def shared_threads(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Half of the cores for each model, unless the environment says otherwise.

    The threads of a forward pass spin while they wait for each other. Two models with as many
    threads as there are cores take them from each other: on 2 busy cores a step was seen to take
    100 times as long, while one thread less costs nothing in float32 and 15% in bfloat16.
    """
    if {"UAG_DRAFT_THREADS", "UAG_VERIFY_THREADS", "OMP_NUM_THREADS"} & environ.keys():
        return {}
    return {"threads": str(max(1, (os.cpu_count() or 1) // 2))}


def start(supervisor: Supervisor, services: Services) -> tuple[Child, ...]:
    """All three at once."""
    return tuple(supervisor.start(spec) for spec in services)


def wait_until_ready(
    supervisor: Supervisor, children: tuple[Child, ...], began: float
) -> Iterator[Ready]:
    """Each service when it serves; at the end the orchestrator knows both models.

    `began` is of time.monotonic. Raises ServiceDiedError if one ends before.
    """
    *_, orchestrator = children
    for child in children:
        supervisor.wait_serving(child)
        if child is orchestrator:
            # It serves as soon as it has met its target; the draft may take seconds more.
            supervisor.wait_serving(child, DRAFT_SERVICE)
        yield Ready(child.spec, time.monotonic() - began)


def _listen(port: int | None, environ: Mapping[str, str], variable: str, default: str) -> str:
    listen = environ.get(variable) or default
    try:
        host, configured = split(listen)
    except BadAddressError as error:
        raise BadAddressError(f"{variable}: {error}") from error
    return with_real_port(f"{host}:{configured if port is None else port}")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)
