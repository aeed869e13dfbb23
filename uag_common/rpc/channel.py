"""Options that clients and servers of all parts share, and how a channel is opened."""

from __future__ import annotations

import grpc

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""A prompt of a million tokens takes 5 MB; a tokenizer file is sent in chunks."""

CHUNK_BYTES = 1024 * 1024

_SIZES = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
_PING_MS = 20_000

SERVER_OPTIONS = (
    *_SIZES,
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
