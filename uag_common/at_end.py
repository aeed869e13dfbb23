"""What is to be done before the process ends. It does not wait for its threads then, as a model
that still loads would hold it, and so does without Python's own `atexit`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

_WORKS = ExitStack()


def at_end(work: Callable[[], object]) -> None:
    """Does the `work` then, the newest first; it may be superfluous by then."""
    _WORKS.callback(work)


def end_all() -> None:
    """Raises what one of them raises, after all others."""
    _WORKS.close()
