"""A pass that takes as long as it should, and leaves the cores to others meanwhile."""

from __future__ import annotations

import time

SPUN_SECONDS = 0.00015
"""`time.sleep` comes back late by half of this or a little more: the end is waited for awake."""


def wait_until(end: float) -> None:
    """Returns at `end`, by the clock of `time.perf_counter`, or at once if it is over."""
    if (left := end - time.perf_counter()) > SPUN_SECONDS:
        time.sleep(left - SPUN_SECONDS)
    while time.perf_counter() < end:
        pass
