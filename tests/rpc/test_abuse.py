"""What a client without manners sends: each gets a clear status or is cut off, the process lives on
with the memory that it had, and another client's stream goes on undisturbed."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf.struct_pb2 import Struct
from grpc_health.v1 import health_pb2

from tests.rpc.http2 import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    Connection,
    field,
    frame,
    message,
    request_fields,
)
from tests.rpc.trivial_service import ECHO, FIRST_MESSAGE_SECONDS, SESSION, TICK, number
from uag_common.rpc.channel import MAX_MESSAGE_BYTES, MAX_METADATA_BYTES, MAX_STREAMS

MB = 1 << 20
MOST_GROWTH = 256 * MB
"""An allocator keeps what it had once; what is sent here in all is many times more."""

INVALID = grpc.StatusCode.INVALID_ARGUMENT
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
SERVING = health_pb2.HealthCheckResponse.SERVING
GOOD = number(1).SerializeToString()
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
HEALTH = "/grpc.health.v1.Health/Check"


@dataclass(frozen=True, slots=True)
class Service:
    """A service as a process of its own."""

    port: int
    process: psutil.Process

    @property
    def memory(self) -> int:
        return int(self.process.memory_info().rss)

    def send(self, method: str, data: bytes, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        """A well-made call with these bytes for its message."""
        with channel_to(self) as channel:
            for _ in channel.unary_stream(method)(data, timeout=10, metadata=metadata):
                pass


def channel_to(service: Service) -> Any:
    """A channel, of any type: the stubs know no call without serializers."""
    return grpc.insecure_channel(f"127.0.0.1:{service.port}")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """One for all tests of this file: it must live through all of them."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.rpc.trivial_service"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the service was started with pipes")
    with child.stdout, child.stdin:
        service = Service(int(child.stdout.readline()), psutil.Process(child.pid))
        service.send(ECHO, GOOD)
        before = service.memory
        yield service
        assert service.memory < before + MOST_GROWTH
    assert child.wait(10) == 0


class Bystander(threading.Thread):
    """Another client, with a stream that is open all the while."""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self._service = service
        self.seen = -1
        self.failure: str | None = None

    def run(self) -> None:
        try:
            self._follow()
        except grpc.RpcError as error:
            self.failure = str(error)

    def _follow(self) -> None:
        with channel_to(self._service) as channel:
            for count, answer in enumerate(channel.unary_stream(TICK)(GOOD)):
                if Struct.FromString(answer) != number(count):
                    self.failure = f"the answer after {self.seen} is not {count}"
                self.seen = count

    def check(self) -> None:
        """Raises AssertionError if its stream does not go on."""
        before, deadline = self.seen, time.monotonic() + 5
        while self.seen <= before + 1 and self.failure is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert self.failure is None
        assert self.seen > before + 1


@pytest.fixture(scope="module")
def bystander(service: Service) -> Bystander:
    thread = Bystander(service)
    thread.start()
    return thread


@pytest.fixture(autouse=True)
def others_are_undisturbed(service: Service, bystander: Bystander) -> Iterator[None]:
    bystander.check()
    yield
    bystander.check()
    with channel_to(service) as channel:
        assert channel.unary_unary(ECHO)(GOOD, timeout=5) == GOOD
        answer = channel.unary_unary(HEALTH)(b"", timeout=5)
        assert health_pb2.HealthCheckResponse.FromString(answer).status == SERVING


@contextlib.contextmanager
def peak_memory(service: Service) -> Iterator[list[int]]:
    """The most memory that the service takes meanwhile."""
    peak, over = [service.memory], threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            peak[0] = max(peak[0], service.memory)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def nested(depth: int) -> bytes:
    """A Struct in a Struct in a Struct."""
    data = b""
    for _ in range(depth):
        for tag in (b"\x2a", b"\x0a\x01a\x12", b"\x0a"):
            data = _delimited(tag, data)
    return data


def _delimited(tag: bytes, data: bytes) -> bytes:
    start, length, left = tag[:-1], bytearray(), len(data)
    while left > 127:
        length.append(left & 127 | 128)
        left >>= 7
    length.append(left)
    if start:
        # An entry of the map: its key, then its value; both together are delimited by the caller.
        return start + tag[-1:] + bytes(length) + data
    return tag + bytes(length) + data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\xff\x01", id="broken"),
        pytest.param(nested(5_000), id="nested"),
        pytest.param(b"\x7b" * 60_000, id="groups"),
        pytest.param(b"\x0a\xff\xff\xff\xff\x07", id="claims 2 GB"),
        pytest.param(b"\x0a\x09\x0a\x01a\x12\x04\x1a\x02\xff\xfe", id="no UTF-8"),
        pytest.param(os.urandom(100_000), id="noise"),
    ],
)
@pytest.mark.parametrize("method", [ECHO, TICK, SESSION, HEALTH, REFLECTION])
def test_what_is_no_message_is_refused(service: Service, method: str, data: bytes) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        service.send(method, data)
    assert refused.value.code() is INVALID


def test_messages_that_are_too_large_are_refused_unread(service: Service) -> None:
    for length in (MAX_MESSAGE_BYTES + 1, 2**32 - 1):
        with Connection(service.port) as connection:
            connection.start(ECHO)
            connection.send(frame(DATA, 0, 1, message(GOOD, length=length)))
            assert connection.status() is EXHAUSTED
    with pytest.raises(grpc.RpcError) as refused:
        service.send(ECHO, bytes(MAX_MESSAGE_BYTES + 1))
    assert refused.value.code() is EXHAUSTED


@pytest.mark.parametrize("method", [ECHO, SESSION])
def test_a_compression_bomb_is_refused_before_it_unfolds(service: Service, method: str) -> None:
    bomb = message(gzip_of_zeros(1024), flag=1)
    assert len(bomb) < 2 * MB
    with peak_memory(service) as peak, Connection(service.port) as connection:
        before = service.memory
        connection.start(method, ("grpc-encoding", "gzip"))
        connection.pour(bomb)
        assert connection.status() is EXHAUSTED
    assert peak[0] < before + 128 * MB


@cache
def gzip_of_zeros(megabytes: int) -> bytes:
    packer, zeros = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(MB)
    return b"".join(packer.compress(zeros) for _ in range(megabytes)) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "flag", "data"),
    [
        ("gzip", 1, b"no gzip at all"),
        ("gzip", 1, gzip.compress(GOOD)[:-4]),
        ("identity", 1, GOOD),
        ("no-such", 1, GOOD),
    ],
)
def test_a_compression_that_is_none_is_refused(
    service: Service, encoding: str, flag: int, data: bytes
) -> None:
    with Connection(service.port) as connection:
        connection.start(ECHO, ("grpc-encoding", encoding))
        connection.pour(message(data, flag=flag))
        assert connection.status() not in (grpc.StatusCode.OK, None)


@pytest.mark.parametrize("data", [b"", b"\x00", message(GOOD, length=len(GOOD) + 1)])
@pytest.mark.parametrize("method", [ECHO, TICK, HEALTH])
def test_a_call_that_ends_without_its_message_is_refused(
    service: Service, method: str, data: bytes
) -> None:
    with Connection(service.port) as connection:
        connection.start(method)
        connection.pour(data)
        assert connection.status() is INVALID


@pytest.mark.parametrize("method", [ECHO, TICK, SESSION, HEALTH])
def test_a_message_that_drips_is_not_waited_for(service: Service, method: str) -> None:
    began = time.monotonic()
    with Connection(service.port) as connection:
        connection.start(method)
        connection.send(frame(DATA, 0, 1, message(b"", length=1000)))
        status = None
        while status is None and time.monotonic() < began + 5 * FIRST_MESSAGE_SECONDS:
            connection.send(frame(DATA, 0, 1, b"\x00"))
            status = connection.status(0.05)
    assert status is grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began >= FIRST_MESSAGE_SECONDS


def test_large_metadata_are_refused_and_small_ones_never(service: Service) -> None:
    for _ in range(20):
        service.send(ECHO, GOOD, (("note", "x" * (MAX_METADATA_BYTES - 2048)),))
    for size in (MAX_METADATA_BYTES, 10 * MAX_METADATA_BYTES):
        with pytest.raises(grpc.RpcError) as refused:
            service.send(ECHO, GOOD, (("note", "x" * size),))
        assert refused.value.code() is EXHAUSTED


@pytest.mark.parametrize("acknowledge", [True, False])
def test_header_fields_without_end_are_not_kept(service: Service, acknowledge: bool) -> None:
    fields = b"".join(field(f"x{count}", "v" * 100) for count in range(140))
    with peak_memory(service) as peak:
        before = service.memory
        for _ in range(3):
            with Connection(service.port, acknowledge=acknowledge) as connection:
                connection.send(frame(HEADERS, 0, 1, request_fields(ECHO)))
                with contextlib.suppress(OSError):
                    for _ in range(4000):
                        connection.send(frame(CONTINUATION, 0, 1, fields))
                assert connection.status(1) in (EXHAUSTED, None)
    assert peak[0] < before + MOST_GROWTH


@pytest.mark.parametrize("path", ["/no.such.Service/Method", "/uag.test.v1.Trivial/No", "/", ""])
def test_unknown_methods_are_told_so(service: Service, path: str) -> None:
    with Connection(service.port) as connection:
        connection.start(path)
        connection.pour(message(GOOD))
        assert connection.status() is UNIMPLEMENTED


@pytest.mark.parametrize("path", [b"/\xff\xfe", b"/uag.test.v1.Trivial/Echo\xc3", b"\x80" * 100])
def test_a_path_that_is_no_text_ends_no_server(service: Service, path: bytes) -> None:
    for _ in range(3):
        with Connection(service.port) as connection:
            connection.start(path)
            connection.pour(message(GOOD))
            assert connection.status() is UNIMPLEMENTED


@pytest.mark.parametrize("content_type", [None, "", "text/html", "application/json"])
def test_the_content_type_changes_nothing(service: Service, content_type: str | None) -> None:
    """gRPC takes any; what counts is that the message is one."""
    fields = request_fields(ECHO, content_type=content_type)
    for data, code in ((GOOD, grpc.StatusCode.OK), (b'{"number": 1}', INVALID)):
        with Connection(service.port) as connection:
            connection.send(frame(HEADERS, END_HEADERS, 1, fields))
            connection.pour(message(data))
            assert connection.status() is code


def test_another_verb_is_no_call(service: Service) -> None:
    with Connection(service.port) as connection:
        fields = request_fields(ECHO, method="GET")
        connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, fields))
        assert connection.status(2) is None


@pytest.mark.parametrize("acknowledge", [True, False])
@pytest.mark.parametrize(
    ("method", "streams", "data"), [(ECHO, 20_000, b""), (TICK, 2_000, message(GOOD))]
)
def test_streams_that_are_opened_and_reset_disturb_nobody(
    service: Service, acknowledge: bool, method: str, streams: int, data: bytes
) -> None:
    """By themselves, or after a message that starts an answer."""
    with (
        channel_to(service) as channel,
        Connection(service.port, acknowledge=acknowledge) as abuser,
    ):
        answers = []
        for count in range(streams):
            stream = 2 * count + 1
            with contextlib.suppress(ConnectionError):
                abuser.start(method, stream=stream)
                if data:
                    abuser.send(frame(DATA, END_STREAM, stream, data))
                abuser.send(frame(RST_STREAM, 0, stream, (8).to_bytes(4, "big")))
            if count % 200 == 0:
                answers.append(channel.unary_unary(ECHO).future(GOOD, timeout=20))
        assert all(answer.result() == GOOD for answer in answers)


@pytest.mark.parametrize("acknowledge", [True, False])
def test_a_connection_has_not_more_streams_than_it_may(service: Service, acknowledge: bool) -> None:
    """They are refused before they cost anything, and the next client is not."""
    refused_stream, enhance_your_calm = 7, 11
    with Connection(service.port, acknowledge=acknowledge) as connection:
        for count in range(3 * MAX_STREAMS):
            connection.start(SESSION, stream=2 * count + 1)
        reasons = (f.payload[-1] for f in connection.frames(5) if f.kind == RST_STREAM)
        assert any(reason in (refused_stream, enhance_your_calm) for reason in reasons)
        service.send(HEALTH, b"")
    time.sleep(1)
    service.send(ECHO, GOOD)


@pytest.mark.parametrize(
    ("kind", "payload", "ends"),
    [(PING, b"12345678", True), (SETTINGS, b"", False), (DATA, b"", False), (99, b"?", False)],
    ids=["ping", "settings", "empty data", "unknown"],
)
def test_frames_that_say_nothing_cost_nothing(
    service: Service, kind: int, payload: bytes, ends: bool
) -> None:
    before = service.memory
    with Connection(service.port) as connection:
        if kind == DATA:
            connection.start(SESSION)
        nothing = frame(kind, 0, 1 if kind == DATA else 0, payload) * 100
        with contextlib.suppress(OSError):
            for _ in range(1000):
                connection.send(nothing)
        assert not ends or connection.is_ended(5)
    assert service.memory < before + 64 * MB


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01" + bytes(500), os.urandom(5000)]
)
def test_what_is_no_http2_is_hung_up_on(service: Service, data: bytes) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
            connection.sendall(data)
            with contextlib.suppress(ConnectionError):
                while connection.recv(1 << 16):
                    pass
