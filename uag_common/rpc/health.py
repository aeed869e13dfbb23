"""Health as a server tells it, in a form whose watchers do not outlive the server."""

from __future__ import annotations

import asyncio
from typing import Any

from grpc_health.v1 import health_pb2
from grpc_health.v1._async import HealthServicer

from uag_common.rpc.errors import Context


class EndingHealth(HealthServicer):  # type: ignore[misc]
    """The library's servicer; a watch ends when the server says so, and not by being cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._ending = asyncio.Event()

    def end_watches(self) -> None:
        """Ends all watches, present and future, after what they were told last."""
        self._ending.set()

    async def Watch(  # noqa: N802 - named by the protocol
        self, request: health_pb2.HealthCheckRequest, context: Context
    ) -> None:
        work: tuple[asyncio.Future[Any], ...] = (
            asyncio.ensure_future(super().Watch(request, context)),
            asyncio.ensure_future(self._ending.wait()),
        )
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for item in work:
                item.cancel()
            await asyncio.gather(*work, return_exceptions=True)
