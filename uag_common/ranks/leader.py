"""The processes that share a model, as the first of them has them: it starts the others, learns
when one is lost, and ends them. Knows no model and no gRPC.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from uag_common.errors import StartError
from uag_common.model_settings import ModelServiceSettings
from uag_common.ranks.errors import RankLostError, failure
from uag_common.ranks.follower_process import FollowerProcess
from uag_common.ranks.place import Place
from uag_common.settings import variable_name

LATE_SECONDS = 2.0
MOMENT_SECONDS = 0.5
"""What this process meets, in a step or while it loads, may come of another's end. That is seen
within this time, and is then the reason to tell."""
STOP_SECONDS = 5.0


class Ranks:
    """All processes of a model, this one included; it may be the only one. Within a running loop:
    `with Ranks(settings, module) as ranks: ...`, with `module` the program of this process."""

    def __init__(
        self,
        settings: ModelServiceSettings,
        module: str,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Raises StartError if the settings are not what torchrun has started."""
        self.place = _place(settings, environ)
        self._by_torchrun = Place.of(environ).size > 1
        self._module = module
        self._ends = ExitStack()
        self._loop = asyncio.get_running_loop()
        self._lost = asyncio.Event()
        self._reason = ""

    def __enter__(self) -> Self:
        """Starts the others, unless torchrun has. Raises StartError."""
        if self.place.size > 1 and not self._by_torchrun:
            with ExitStack() as ends:
                self._start(ends)
                self._ends = ends.pop_all()
        return self

    def _start(self, ends: ExitStack) -> None:
        # Nobody else may read it, so nobody else can join.
        folder = ends.enter_context(TemporaryDirectory(prefix="uag-ranks-"))
        self.place = replace(self.place, store=Path(folder) / "store")
        followers: list[FollowerProcess] = []
        ends.callback(self._end, followers)
        for place in self.place.others():
            followers.append(FollowerProcess(place, self._module))
            threading.Thread(target=self._watch, args=(followers[-1],), daemon=True).start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.close()

    def _end(self, followers: list[FollowerProcess]) -> None:
        # One that hangs does not end by itself.
        deadline = time.monotonic() + (0.0 if self._lost.is_set() else STOP_SECONDS)
        for follower in followers:
            follower.tell_to_end()
        for follower in followers:
            follower.end(deadline)

    def _watch(self, follower: FollowerProcess) -> None:
        self._call(self._lose, f"{follower.place.name} {follower.last_words()}")

    def failed(self, error: Exception) -> None:
        """A step failed here, and what the others do now nobody knows. May be called from any
        thread."""
        reason = f"{self.place.name} {failure(error)}"
        self._call(self._loop.call_later, LATE_SECONDS, self._lose, reason)

    async def settle(self, error: BaseException) -> None:
        """For that reason this process could not load the model. Raises RankLostError if that comes
        of another's end, or of a step that failed."""
        if self.place.size > 1:
            late = LATE_SECONDS if isinstance(error, RankLostError) else 0.0
            await self.intact(late + MOMENT_SECONDS)

    def hangs(self, seconds: float) -> None:
        """A step has been running for so long. Raises RankLostError where several take part in it:
        they may wait for one of them for ever."""
        if (size := self.place.size) > 1:
            self._lose(f"a step of {size} processes runs for {seconds:.1f} s: one of them hangs")
            raise RankLostError(self._reason)

    def _call(self, work: Callable[..., object], *arguments: Any) -> None:
        # Once the loop has ended all is ending anyway.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *arguments)

    def _lose(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._lost.set()

    async def intact(self, seconds: float) -> None:
        """Waits so long. Raises RankLostError as soon as one is lost."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._lost.wait(), seconds)
        if self._lost.is_set():
            raise RankLostError(self._reason)


def _place(settings: ModelServiceSettings, environ: Mapping[str, str]) -> Place:
    wanted, started = settings.tensor_parallel, Place.of(environ)
    if started.size == 1:
        return Place(size=wanted)
    if wanted not in (1, started.size):
        name = variable_name(type(settings), "tensor_parallel")
        raise StartError(f"{name}={wanted}: torchrun has started {started.size} processes")
    return started
