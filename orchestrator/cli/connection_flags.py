"""Flags that say where an orchestrator is and how it is reached. Knows the client."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.cli.command import UsageError
from orchestrator.cli.services import ORCHESTRATOR_ADDRESS
from orchestrator.client import Client, ConnectError, InsecureKeyError, Tls
from uag_common.addresses import BadAddressError, split
from uag_common.errors import InvalidRequestError

API_KEY = "UAG_API_KEY"
REMEDY = (
    "start the services there with `uag up`, or give the orchestrator's address with "
    "--target HOST:PORT"
)


def add_connection_flags(parser: ArgumentParser) -> None:
    """--target, --timeout, TLS. A key comes from the environment, where no other user sees it."""
    group = parser.add_argument_group("connection", f"the API key is what {API_KEY} holds")
    group.add_argument(
        "--target", type=_address, default=ORCHESTRATOR_ADDRESS, metavar="HOST:PORT",
        help="the orchestrator (default: %(default)s)",
    )  # fmt: skip
    group.add_argument(
        "--timeout", type=positive_seconds, default=600.0, metavar="S",
        help="seconds until the whole answer must be there (default: %(default)g)",
    )  # fmt: skip
    group.add_argument("--tls", action="store_true", help="TLS with the system's authorities")
    group.add_argument("--tls-ca", metavar="FILE", help="TLS with the authorities of this PEM file")
    group.add_argument("--tls-certificate", metavar="FILE", help="what this client shows, PEM")
    group.add_argument("--tls-key", metavar="FILE", help="the certificate's key, PEM")


@contextmanager
def connected(flags: Namespace) -> Iterator[Client]:
    """A client for the block. Raises UsageError, and ClientError with the remedy in it."""
    try:
        tls = _tls(flags)
        client = Client(
            flags.target, timeout=flags.timeout, tls=tls, api_key=os.environ.get(API_KEY)
        )
    except InsecureKeyError as error:
        raise UsageError(
            f"without TLS the key of {API_KEY} could be read on its way to {flags.target}: "
            "use --tls or --tls-ca"
        ) from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise InvalidRequestError(
            str(error.filename), f"cannot be read: {error.strerror}"
        ) from error
    with client:
        try:
            yield client
        except ConnectError as error:
            raise error if tls else ConnectError(f"{error}: {REMEDY}") from error


def positive_seconds(text: str) -> float:
    """The number of a flag. Raises ArgumentTypeError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds greater than 0")
    return seconds


def _tls(flags: Namespace) -> Tls | bool:
    files = (flags.tls_ca, flags.tls_certificate, flags.tls_key)
    return Tls(*files) if any(files) else bool(flags.tls)


def _address(text: str) -> str:
    try:
        split(text)
    except BadAddressError as error:
        raise ArgumentTypeError(str(error)) from error
    return text
