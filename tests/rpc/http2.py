"""An HTTP/2 connection by hand, for what no gRPC client would send.

Frames by RFC 9113; header fields by RFC 7541, always as literals that are not indexed. Answers are
read as far as a gRPC status can be seen in them: each connection makes one call, so that the server
sends its fields as literals too.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import grpc

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 6, 7, 8, 9,
)  # fmt: skip
END_STREAM, ACK, END_HEADERS = 1, 1, 4
MAX_FRAME = 16384
WINDOW = 65535

_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it was received."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def field(name: str, value: str | bytes) -> bytes:
    """A header field."""
    text = value.encode() if isinstance(value, str) else value
    return b"\x00" + _string(name.encode()) + _string(text)


def request_fields(
    path: str | bytes,
    *extra: tuple[str, str],
    method: str = "POST",
    content_type: str | None = "application/grpc",
) -> bytes:
    """The header fields of a call."""
    block = field(":method", method) + field(":scheme", "http") + field(":path", path)
    block += field(":authority", "localhost") + field("te", "trailers")
    if content_type is not None:
        block += field("content-type", content_type)
    return block + b"".join(field(name, value) for name, value in extra)


def message(data: bytes, *, flag: int = 0, length: int | None = None) -> bytes:
    """A gRPC message, or what claims to be one of that length."""
    return bytes((flag,)) + (len(data) if length is None else length).to_bytes(4, "big") + data


class Connection:
    """A connection that has said its preface. `acknowledge`: whether it ever takes the server's
    settings, without which some limits of the server do not hold yet."""

    def __init__(self, port: int, *, acknowledge: bool = True) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._buffer = b""
        self._acknowledge = acknowledge
        self._windows = {0: WINDOW, 1: WINDOW}
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, 0, 0))
        if acknowledge:
            self._take(next(self.frames(10)))

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *frames: bytes) -> None:
        self._socket.sendall(b"".join(frames))

    def start(self, path: str | bytes, *extra: tuple[str, str], stream: int = 1) -> None:
        """Opens a call."""
        self.send(frame(HEADERS, END_HEADERS, stream, request_fields(path, *extra)))

    def pour(self, data: bytes) -> None:
        """Sends the data of call 1 and ends it, as fast as the server's windows allow."""
        sent = 0
        while sent < len(data):
            size = min(MAX_FRAME, len(data) - sent, *self._windows.values())
            if size <= 0:
                self._take(next(self.frames(10)))
                continue
            self.send(frame(DATA, 0, 1, data[sent : sent + size]))
            sent += size
            self._windows = {stream: left - size for stream, left in self._windows.items()}
        self.send(frame(DATA, END_STREAM, 1))

    def frames(self, seconds: float) -> Iterator[Frame]:
        """What comes within that time, until the server closes."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            size = 9 + int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) >= size:
                head, payload = self._buffer[:9], self._buffer[9:size]
                self._buffer = self._buffer[size:]
                yield Frame(head[3], head[4], int.from_bytes(head[5:9], "big"), payload)
                continue
            self._socket.settimeout(left)
            try:
                received = self._socket.recv(1 << 16)
            except (TimeoutError, ConnectionError):
                return
            if not received:
                return
            self._buffer += received

    def status(self, seconds: float = 10) -> grpc.StatusCode | None:
        """The status of call 1; None if none comes within that time or the stream is reset."""
        for received in self.frames(seconds):
            self._take(received)
            found = re.search(rb"grpc-status([\x01\x02])(\d\d?)", received.payload)
            if received.kind == HEADERS and found:
                return _CODES[int(found[2][: found[1][0]])]
            if received.kind == RST_STREAM:
                return None
        return None

    def is_ended(self, seconds: float = 10) -> bool:
        """Whether the server says within that time that it takes no more, or closes."""
        until = time.monotonic() + seconds
        told = any(received.kind == GOAWAY for received in self.frames(seconds))
        return told or time.monotonic() < until

    def _take(self, received: Frame) -> None:
        if received.kind == WINDOW_UPDATE:
            added = int.from_bytes(received.payload, "big")
            self._windows[received.stream] = self._windows.get(received.stream, WINDOW) + added
        elif received.kind == SETTINGS and not received.flags & ACK and self._acknowledge:
            self._set(received.payload)
            self.send(frame(SETTINGS, ACK, 0))

    def _set(self, settings: bytes) -> None:
        for start in range(0, len(settings), 6):
            name = int.from_bytes(settings[start : start + 2], "big")
            value = int.from_bytes(settings[start + 2 : start + 6], "big")
            initial_window = 4
            if name == initial_window:
                self._windows[1] += value - WINDOW


def _string(data: bytes) -> bytes:
    """With its length as an integer of 7 bits and more."""
    most = 127
    if len(data) < most:
        return bytes((len(data),)) + data
    left, length = len(data) - most, bytearray((most,))
    while left >= 128:
        length.append(left % 128 | 128)
        left //= 128
    length.append(left)
    return bytes(length) + data
