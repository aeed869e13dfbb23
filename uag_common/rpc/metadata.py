"""What the metadata of a call tell. Knows no service."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


def traceparent(context: Context) -> str:
    """The caller's W3C trace context, as it stands; empty if there is none."""
    for key, value in context.invocation_metadata() or ():
        if key == "traceparent":
            return str(value)
    return ""
