"""How a server is reached: its address, TLS, the API key, the deadline. Knows channels, no call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from numbers import Real
from pathlib import Path

import grpc

from uag_common.addresses import split
from uag_common.rpc.channel import CLIENT_OPTIONS

MAX_SECONDS = 1e9
"""Thirty years: a longer timeout is none, and gRPC's clock could not hold it."""

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. `ca`: who may have signed the server's certificate, the system's authorities if
    not given. `certificate` and `key`: what this client shows to a server that asks for it."""

    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("a certificate goes with its key: give both or neither")

    def credentials(self) -> grpc.ChannelCredentials:
        """Raises OSError for a file that cannot be read."""
        return grpc.ssl_channel_credentials(
            root_certificates=_content(self.ca),
            private_key=_content(self.key),
            certificate_chain=_content(self.certificate),
        )


class InsecureKeyError(ValueError):
    """An API key would go over the network in the clear."""


@dataclass(frozen=True, slots=True)
class Connection:
    """`address` is "host:port". `tls`: True for the system's authorities. `timeout`: seconds of a
    call that names none itself; None: no end.

    Raises BadAddressError, ValueError for a key that cannot be sent, and InsecureKeyError for one
    that anybody on the way could read (no TLS, another machine) unless `allow_insecure_key`.
    """

    address: str
    tls: Tls | bool = False
    api_key: str | None = field(default=None, repr=False)
    allow_insecure_key: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        self._check_types()
        host, _ = split(self.address)
        self.seconds(None)
        if self.api_key is None:
            return
        # Not told: an error message must not show a key.
        if not (self.api_key and self.api_key.isascii() and self.api_key.isprintable()):
            raise ValueError("the API key must be printable ASCII")
        if not (self.tls or self.allow_insecure_key or _is_loopback(host)):
            raise InsecureKeyError(
                f"without TLS the API key could be read on its way to {self.address}: use tls=, or "
                "allow_insecure_key=True where the network itself is safe"
            )

    def _check_types(self) -> None:
        # A caller without a type checker would learn of it from some library, at the first call.
        for name, value, kinds in (
            ("address", self.address, str),
            ("tls", self.tls, Tls | bool),
            ("api_key", self.api_key, str | None),
        ):
            if not isinstance(value, kinds):
                raise TypeError(f"{name}: is a {type(value).__name__}, see Client")

    def open(self) -> grpc.Channel:
        """A channel that connects when it is first used."""
        credentials = self._credentials()
        if credentials is None:
            return grpc.insecure_channel(self.address, options=CLIENT_OPTIONS)
        return grpc.secure_channel(self.address, credentials, options=CLIENT_OPTIONS)

    def open_async(self) -> grpc.aio.Channel:
        """The same for asyncio; inside the loop that is to use it."""
        credentials = self._credentials()
        if credentials is None:
            return grpc.aio.insecure_channel(self.address, options=CLIENT_OPTIONS)
        return grpc.aio.secure_channel(self.address, credentials, options=CLIENT_OPTIONS)

    def _credentials(self) -> grpc.ChannelCredentials | None:
        tls = Tls() if self.tls is True else self.tls
        return tls.credentials() if tls else None

    def seconds(self, timeout: float | None) -> float | None:
        """The deadline of a call that asks for `timeout`. Raises ValueError and TypeError."""
        chosen = self.timeout if timeout is None else timeout
        _check_number(chosen)
        if chosen is None or chosen > MAX_SECONDS:
            return None
        if not chosen > 0:
            raise ValueError(f"timeout: is {chosen}, must be above 0 seconds")
        return chosen

    def metadata(self, traceparent: str | None) -> tuple[tuple[str, str], ...]:
        """What goes with a call. Raises ValueError for what is no W3C `traceparent`."""
        pairs = []
        if self.api_key is not None:
            pairs.append(("authorization", f"Bearer {self.api_key}"))
        if traceparent is not None:
            if not (isinstance(traceparent, str) and _TRACEPARENT.fullmatch(traceparent)):
                raise ValueError(
                    f"traceparent: is {traceparent!r}, must be as in "
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 (W3C Trace Context)"
                )
            pairs.append(("traceparent", traceparent))
        return tuple(pairs)


def _content(path: Path | str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


def _check_number(timeout: object) -> None:
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real)):
        raise TypeError(f"timeout: is {timeout!r}, must be a number of seconds")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
