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
AGAIN_SECONDS = 3.0
"""Longer than what a command does on its way out, where the exception is not to come twice."""


class Terminated(KeyboardInterrupt):
    """SIGTERM; everything that a Ctrl-C stops, it stops too."""


class _Interrupts:
    """What became of the signals of this process."""

    def __init__(self) -> None:
        self.unseen: type[KeyboardInterrupt] | None = None
        self.blocks = 0
        self.late = False

    def came(self, number: int, frame: FrameType | None) -> None:
        self.unseen = Terminated if number == signal.SIGTERM else KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        self.raise_again(number, frame)

    def raise_again(self, _number: int, _frame: FrameType | None) -> None:
        if self.unseen is None:
            return
        self.late = self.blocks > 0
        if not self.late:
            raise self.unseen

    def leave_block(self) -> None:
        self.blocks -= 1
        if self.unseen is not None and self.late and not self.blocks:
            self.late = False
            raise self.unseen


_interrupts = _Interrupts()


def raise_on_signals() -> None:
    """From now on both signals raise in the main thread, even where a shell had SIGINT ignored, and
    again every AGAIN_SECONDS until `seen` is called.

    Once is not enough: an exception out of a `__del__` or of a callback of the interpreter is
    printed and forgotten, and one in the midst of a lock leaves it locked, so that the clean-up
    waits for ever. SIGALRM is in use from now on.
    """
    signal.signal(signal.SIGALRM, _interrupts.raise_again)
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupts.came)


def seen() -> None:
    """What came so far has reached somebody who stops for it: it does not raise again."""
    if _interrupts.unseen is None:
        # The timer may be somebody else's.
        return
    _interrupts.unseen = None
    _interrupts.late = False
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds both signals back until the block is left: for a step that must not be half done.

    Without `raise_on_signals`, and outside the main thread, which no signal interrupts, it does
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _interrupts.blocks += 1
    try:
        yield
    finally:
        _interrupts.leave_block()
