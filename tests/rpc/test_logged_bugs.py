"""What a bug of ours leaves in the log: one event that leads to the trace of its call."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator
from io import StringIO

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct

from tests.rpc.trivial_service import ECHO, TICK, number, serving, trivial_server
from uag_common.logs import JsonFormatter
from uag_common.rpc.metadata import Context

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"


@pytest.fixture
def written() -> Iterator[StringIO]:
    """What our own loggers write."""
    handler = logging.StreamHandler(stream := StringIO())
    handler.setFormatter(JsonFormatter("uag-test"))
    ours = logging.getLogger("uag_common")
    ours.addHandler(handler)
    yield stream
    ours.removeHandler(handler)


@pytest.mark.parametrize("method", [ECHO, TICK])
async def test_a_bug_is_one_event_in_the_trace_of_its_call(method: str, written: StringIO) -> None:
    async def one(request: Struct, context: Context) -> Struct:  # noqa: ARG001
        raise KeyError("gone")

    async def stream(request: Struct, context: Context) -> AsyncIterator[Struct]:
        yield await one(request, context)

    async with serving(trivial_server(one, stream)) as channel:
        call = channel.unary_stream(method)(
            number(1).SerializeToString(), timeout=5, metadata=(("traceparent", TRACEPARENT),)
        )
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call.read()
        assert failed.value.code() is grpc.StatusCode.INTERNAL
    (line,) = written.getvalue().splitlines()
    event = json.loads(line)
    assert (event["level"], event["error"]["type"]) == ("ERROR", "KeyError")
    assert event["trace_id"] == TRACE_ID
    assert event["span_id"]
