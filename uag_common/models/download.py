"""Fetches one file whose size and sha256 are known, and goes on where an earlier try stopped.

Knows HTTP and files; must not know what the file is for. What has arrived is kept beside the
destination as `.part`, so an interrupted transfer (even a killed process) loses nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from uag_common.models.errors import DownloadError
from uag_common.models.hashing import sha256_of
from uag_common.models.reports import Progress, Transfer

PART = ".part"
CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 30.0
SCHEMES = ("https", "http", "file")
WORTH_ANOTHER_TRY = frozenset({408, 416, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Remote:
    """What is to be fetched. The sha256 alone decides whether it is the right file."""

    url: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Patience:
    """How many tries in a row may bring nothing new, and the pause after the first of them."""

    attempts: int = 5
    first_pause_seconds: float = 1.0

    def pause_seconds(self, failures: int) -> float:
        """Doubles with each failure in a row."""
        return self.first_pause_seconds * 2.0 ** max(0, failures - 1)


class _RefusedError(Exception):
    """The server will answer the same again."""


def download(
    remote: Remote,
    destination: Path,
    progress: Progress,
    *,
    title: str = "",
    patience: Patience = Patience(),
) -> None:
    """Put the file at `destination`, shown as `title` (or by its name). Raises DownloadError."""
    if urlsplit(remote.url).scheme not in SCHEMES:
        raise DownloadError(f"{remote.url} is no http, https or file address")
    part = destination.with_name(destination.name + PART)
    resumed = part.exists()
    with progress.transfer(title or destination.name, remote.size_bytes) as transfer:
        _complete(remote, part, transfer, patience)
        if resumed and sha256_of(part) != remote.sha256:
            # The older piece may have been of another file; one clean try tells.
            part.unlink()
            _complete(remote, part, transfer, patience)
    if sha256_of(part) != remote.sha256:
        part.unlink()
        raise DownloadError(
            f"{remote.url} is not the file that was asked for (its sha256 differs): "
            "check the package index that pip uses"
        )
    part.replace(destination)


def _complete(remote: Remote, part: Path, transfer: Transfer, patience: Patience) -> None:
    """Try until all bytes are here, or until several tries in a row brought nothing."""
    part.touch()
    failures = 0
    while (had := part.stat().st_size) != remote.size_bytes:
        try:
            _receive(remote, part, transfer)
            reason = "the connection was cut"
        except _RefusedError as error:
            raise DownloadError(f"{remote.url}: {error}") from error
        except (OSError, HTTPException) as error:
            reason = _plainly(error)
        failures = 0 if part.stat().st_size > had else failures + 1
        if failures >= patience.attempts:
            raise DownloadError(
                f"{remote.url}: {reason}, after {failures} tries: "
                "check the network and run it again, what has arrived is kept"
            )
        if part.stat().st_size != remote.size_bytes:
            time.sleep(patience.pause_seconds(failures))
    transfer.reached(remote.size_bytes)


def _plainly(error: Exception) -> str:
    if isinstance(error, URLError) and not isinstance(error, HTTPError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _receive(remote: Remote, part: Path, transfer: Transfer) -> None:
    have = part.stat().st_size
    if have > remote.size_bytes:
        have = 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    request = Request(remote.url, headers=headers)  # noqa: S310  (the scheme was checked)
    try:
        response = urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
    except HTTPError as error:
        _judge(error, part)
        raise
    except URLError as error:
        if isinstance(error.reason, SSLCertVerificationError):
            raise _RefusedError(
                f"{error.reason.verify_message}: point SSL_CERT_FILE at the right certificates"
            ) from error
        raise
    with response:
        # A server (or a file) that ignores the range sends all: then all starts anew.
        start = have if response.status == 206 else 0
        _append(response, part, start, remote.size_bytes, transfer)


def _append(
    response: IO[bytes], part: Path, start: int, size_bytes: int, transfer: Transfer
) -> None:
    with part.open("r+b") as file:
        file.truncate(start)
        done = file.seek(start)
        transfer.reached(done)
        while done < size_bytes and (chunk := response.read(min(CHUNK_BYTES, size_bytes - done))):
            done += file.write(chunk)
            transfer.reached(done)


def _judge(error: HTTPError, part: Path) -> None:
    error.close()
    if error.code == 416:
        part.write_bytes(b"")
    elif error.code in (401, 403):
        raise _RefusedError(
            f"{error.code} {error.reason}: if the server wants credentials, fetch it with "
            f"`pip download --no-deps` into {part.parent}"
        )
    elif error.code not in WORTH_ANOTHER_TRY:
        raise _RefusedError(f"{error.code} {error.reason}")
