"""Lets go of a task whose outcome nobody waits for any more."""

from __future__ import annotations

import asyncio
from typing import Any


def abandon(task: asyncio.Future[Any]) -> None:
    """Cancels it, or takes note of its error, so that a failure which came too late to matter is
    not reported as one that was overlooked."""
    if not task.cancel() and not task.cancelled():
        task.exception()
