"""Where services listen and where they are reached. Knows sockets, no service."""

from __future__ import annotations

import socket

from uag_common.errors import StartError, UagError
from uag_common.ports import describe_owner

LOOPBACK = "127.0.0.1"
_EVERYWHERE = {"0.0.0.0": LOOPBACK, "[::]": "[::1]"}  # noqa: S104 - recognised, not bound


class BadAddressError(UagError, ValueError):
    """No "host:port"."""

    status = "INVALID_ARGUMENT"


def split(address: str) -> tuple[str, int]:
    """Host (as written) and port. Raises BadAddressError."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit()) or "/" in host:
        raise BadAddressError(f"{address!r} is no HOST:PORT, such as 127.0.0.1:50050")
    if int(port) >= 1 << 16:
        raise BadAddressError(f"{address!r} is no HOST:PORT: ports go up to 65535")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise BadAddressError(f"{address!r} is no HOST:PORT; write an IPv6 host in brackets")
    return host, int(port)


def split_setting(address: str, setting: str) -> tuple[str, int]:
    """As `split`, of what a setting says. Raises StartError that names the `setting`."""
    try:
        return split(address)
    except BadAddressError as error:
        raise StartError(f"{setting}: {error}") from error


def check_listen(listen: str, setting: str) -> tuple[str, int]:
    """Host (as written) and port, which nobody has. Raises StartError that names the `setting`."""
    host, port = split_setting(listen, setting)
    check_free(listen, f"stop it, or choose another address in {setting}")
    return host, port


def with_real_port(listen: str) -> str:
    """The same with a free port in place of port 0: a child cannot tell which one it took."""
    host, port = split(listen)
    if port:
        return listen
    with socket.create_server((host.strip("[]"), 0), family=family_of(host)) as server:
        return f"{host}:{server.getsockname()[1]}"


def reachable_form(listen: str) -> str:
    """Where a client on this machine reaches a server that listens there."""
    host, port = split(listen)
    return f"{_EVERYWHERE.get(host, host)}:{port}"


def check_free(listen: str, remedy: str) -> None:
    """Raises StartError that names who has the port."""
    host, port = split(listen)
    try:
        with socket.create_server((host.strip("[]"), port), family=family_of(host)):
            pass
    except OSError as error:
        raise StartError(
            f"cannot listen on {listen} ({error.strerror}){describe_owner(listen)}; {remedy}"
        ) from error


def answers(address: str, timeout_seconds: float = 1.0) -> bool:
    """Whether anything accepts a connection there."""
    host, port = split(address)
    try:
        with socket.create_connection((host.strip("[]"), port), timeout_seconds):
            return True
    except OSError:
        return False


def family_of(host: str) -> socket.AddressFamily:
    """Of a host as it is written in an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET
