from __future__ import annotations

import statistics
import time

import pytest

from benchmarks.emulation.timing import wait_until


@pytest.mark.parametrize("seconds", [0.0001, 0.003])
def test_it_is_never_early_and_hardly_late(seconds: float) -> None:
    late = []
    for _ in range(30):
        end = time.perf_counter() + seconds
        wait_until(end)
        late.append(time.perf_counter() - end)
    assert min(late) >= 0
    assert statistics.median(late) < 0.0005
