"""Gives freed memory back to the system.

glibc keeps in its arenas what threads have freed: after a few large prompts a process would hold
gigabytes for good. Elsewhere there is nothing to do.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from pathlib import Path

FIRST_PAUSE_SECONDS = 1.0
LAST_PAUSE_SECONDS = 10.0
WORTH_BYTES = 16 * 1024 * 1024
"""If so much came back there may soon be more."""

_STATM = Path("/proc/self/statm")


async def give_back() -> None:
    """For ever, now and then; more often while it is worth it. Ends at once where the system's
    library has no such call."""
    library = _library()
    if library is None:
        return
    pause = FIRST_PAUSE_SECONDS
    while True:
        await asyncio.sleep(pause)
        before = _resident()
        # Other threads run on meanwhile.
        await asyncio.to_thread(library.malloc_trim, 0)
        worth = before - _resident() > WORTH_BYTES
        pause = FIRST_PAUSE_SECONDS if worth else min(2 * pause, LAST_PAUSE_SECONDS)


def give_back_now() -> None:
    """Once."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def _library() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and _STATM.exists() else None


def _resident() -> int:
    """Bytes of this process that are in memory."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
