"""Whether an address can be listened on, and who has it if not. The latter on Linux only."""

from __future__ import annotations

import socket
from pathlib import Path

from uag_common.errors import StartError

_LISTENING = "0A"


def check_can_listen(address: str, setting: str) -> None:
    """Raises StartError that names the `setting` unless "host:port" is free to listen on. Asked
    before gRPC is, which prints a line of its own for each address that it cannot have."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise StartError(f"{setting}={address}: must be HOST:PORT, such as 127.0.0.1:50051")
    try:
        family, kind, *_, where = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen()
    except (OSError, OverflowError) as error:
        reason = describe_owner(address) or f" ({error})"
        raise StartError(
            f"{setting}={address}: cannot listen there{reason}; choose another address"
        ) from error


def describe_owner(address: str) -> str:
    """Names the process that listens on "host:port", as the end of a clause; else ""."""
    port = address.rpartition(":")[2]
    inodes = _listening_inodes(int(port)) if port.isdigit() else frozenset()
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        if _holds(process, inodes):
            command = _command(process)
            return f", the port is taken by {command} (pid {process.name})"
    return ""


def _listening_inodes(port: int) -> frozenset[str]:
    found = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{words[9]}]")
    return frozenset(found)


def _holds(process: Path, inodes: frozenset[str]) -> bool:
    try:
        return any(str(link.readlink()) in inodes for link in (process / "fd").iterdir())
    except OSError:
        # Another user's process, or one that ended just now.
        return False


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        return b" ".join(words[:4]).decode(errors="replace").strip()
    except OSError:
        return "a process that just ended"
