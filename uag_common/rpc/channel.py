"""Options that clients and servers of all parts share, and how a channel is opened."""

from __future__ import annotations

import grpc

from uag_common.rpc.calls import MAX_OPEN_CALLS

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""A prompt of a million tokens takes 5 MB; a tokenizer file is sent in chunks."""

CHUNK_BYTES = 1024 * 1024

_SIZES = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
_PING_MS = 20_000

MAX_METADATA_BYTES = 16 * 1024
"""A trace context and a key take a few hundred."""

MAX_STREAMS = 2 * MAX_OPEN_CALLS
"""Of one connection. More than the calls that are served, so that the next one is refused in words
and does not wait inside its client; without a bound one connection can take all memory."""

MAX_PENDING = 16 * MAX_OPEN_CALLS
"""Calls of one method that have come in and are not seen to yet. By default gRPC drops some from
1000 on, without a word: so many come in one burst of good clients, and a client that opens and
resets streams as fast as it can would have the others' calls dropped with its own."""

SERVER_OPTIONS = (
    *_SIZES,
    # One limit for both: between a lower first one and a higher second gRPC refuses by chance.
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    ("grpc.server.max_pending_requests", MAX_PENDING),
    # Who connects and says nothing; the default waits for two minutes.
    ("grpc.server_handshake_timeout_ms", _PING_MS),
    # Without this two servers share a port silently, and each gets half of the calls.
    ("grpc.so_reuseport", 0),
    # A silent network is noticed within a minute; the default is two hours.
    ("grpc.keepalive_time_ms", _PING_MS),
    ("grpc.keepalive_timeout_ms", _PING_MS),
    # Our own clients ping as often; the default allows one ping in five minutes.
    ("grpc.http2.min_ping_interval_without_data_ms", _PING_MS // 2),
    ("grpc.keepalive_permit_without_calls", 1),
)

CLIENT_OPTIONS = (
    *_SIZES,
    ("grpc.keepalive_time_ms", _PING_MS),
    ("grpc.keepalive_timeout_ms", _PING_MS),
    # A proxy is for the world outside; the parts of one deployment reach each other without.
    ("grpc.enable_http_proxy", 0),
    # A service that comes back is found again within seconds; the default waits up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 3_000),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel to `address` ("host:port"); connects when it is first used."""
    return grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
