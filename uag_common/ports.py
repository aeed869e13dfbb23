"""Who has a port: for the message of a server that cannot have it. Silent but on Linux."""

from __future__ import annotations

from pathlib import Path

_LISTENING = "0A"


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
