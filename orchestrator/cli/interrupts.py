"""Ctrl-C and SIGTERM, so that a command ends by an exception and cleans up on its way.

Knows signals, nothing of what is interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM; everything that a Ctrl-C stops, it stops too."""


def raise_on_signals() -> None:
    """From now on both signals raise in the main thread, even where a shell had SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated(number, frame)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds both signals back until the block is left: for a step that must not be half done.

    Outside the main thread, which no signal interrupts, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        signal.signal(number, lambda number, _: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
