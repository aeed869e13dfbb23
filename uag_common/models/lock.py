"""One process at a time. Knows a lock file, must not know what it protects."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, on_wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock; `on_wait` is called once if somebody else has it. Yields its descriptor.

    The kernel frees it when the last process that holds the descriptor ends, however it ends: a
    child that inherits the descriptor goes on protecting its work if its parent is killed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(descriptor, on_wait)
        yield descriptor
    finally:
        # Closing, not unlocking: unlocking would free it for an inheriting child too.
        os.close(descriptor)


def _take(descriptor: int, on_wait: Callable[[], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        on_wait()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
