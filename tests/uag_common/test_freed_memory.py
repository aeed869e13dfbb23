from __future__ import annotations

import asyncio
import ctypes
import subprocess
import sys

import pytest

# Half of the blocks stay, so that what is free lies between them.
PROGRAM = """
import asyncio, ctypes, psutil
from uag_common.freed_memory import give_back
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
blocks = [library.malloc(60_000) for _ in range(4000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
for block in blocks[:-1]:
    library.free(block)
def resident():
    return psutil.Process().memory_info().rss
async def main():
    held = resident()
    task = asyncio.create_task(give_back())
    for _ in range(100):
        await asyncio.sleep(0.1)
        if resident() < held - 150_000_000:
            return
    raise SystemExit(f"{held} bytes before, {resident()} after")
asyncio.run(main())
"""


def test_what_is_freed_between_what_stays_comes_back() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("only glibc keeps it")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


async def test_where_there_is_nothing_to_do_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    from uag_common.freed_memory import give_back

    await asyncio.wait_for(give_back(), 1)
