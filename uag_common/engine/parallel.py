"""One model over several processes: rank 0 leads, the others do each of its passes after it.

Each has a part of every layer's weights and the caches of its own heads; what a pass is about is
numbers, which the leader sends. Knows no sessions, and not how the processes came to be.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist

from uag_common.engine.pack import Pack
from uag_common.engine.pack_runner import PackRunner
from uag_common.engine.packed import Runner
from uag_common.errors import StartError
from uag_common.ranks.errors import RankLostError
from uag_common.ranks.place import Place

FOREVER = timedelta(days=3650)
"""Nobody ends for having waited: who has nothing to do waits as long as there is nothing. Of one
that hangs the leader's watch learns."""
ROOM = 1024
"""Numbers that are sent at once; most passes take no more."""


class Team(Protocol):
    """The processes of a model, as any of them has them."""

    @property
    def size(self) -> int:
        """How many they are."""

    def least(self, number: int) -> int:
        """Of the numbers that all of them call this with."""


class Leading(Team, Protocol):
    """The same, as the first of them has them."""

    def say(self, text: str) -> None:
        """To all others, which `hear` it."""

    def everywhere(self, runner: PackRunner) -> Runner:
        """What runs packs in all of them; here `runner` does it."""


class Alone:
    """This process is the only one."""

    size = 1

    def least(self, number: int) -> int:
        return number

    def say(self, text: str) -> None: ...

    def everywhere(self, runner: PackRunner) -> Runner:
        return runner


ALONE = Alone()


class Channel:
    """To the other processes. What one of them does here, all do, in the same order."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self.size = group.size()

    def least(self, number: int) -> int:
        numbers = torch.tensor([number])
        dist.all_reduce(numbers, dist.ReduceOp.MIN, group=self._group)
        return int(numbers)

    def send(self, ints: Sequence[int]) -> None:
        """From the leader."""
        first = torch.zeros(ROOM, dtype=torch.int64)
        first[: 1 + len(ints)] = torch.tensor([len(ints), *ints[: ROOM - 1]])
        self._broadcast(first)
        if rest := ints[ROOM - 1 :]:
            self._broadcast(torch.tensor(rest))

    def receive(self) -> list[int]:
        """What the leader sends. Raises RuntimeError if one of the processes has gone."""
        first = torch.empty(ROOM, dtype=torch.int64)
        self._broadcast(first)
        count, *ints = first.tolist()
        if (more := count - len(ints)) <= 0:
            return ints[:count]
        rest = torch.empty(more, dtype=torch.int64)
        self._broadcast(rest)
        return [*ints, *rest.tolist()]

    def _broadcast(self, numbers: torch.Tensor) -> None:
        dist.broadcast(numbers, src=0, group=self._group)


class LeadingTeam:
    """`Leading` over a channel. `failed` is told of a pass that failed."""

    def __init__(self, channel: Channel, failed: Callable[[Exception], None]) -> None:
        self._channel = channel
        self._failed = failed
        self.size = channel.size
        self.least = channel.least

    def say(self, text: str) -> None:
        self._channel.send(list(text.encode()))

    def everywhere(self, runner: PackRunner) -> Runner:
        return ParallelRunner(self._channel, runner, self._failed)


class ParallelRunner:
    """Runs packs in all processes, as their leader."""

    def __init__(
        self, channel: Channel, runner: PackRunner, failed: Callable[[Exception], None]
    ) -> None:
        self._channel = channel
        self._runner = runner
        self._failed = failed
        self._over = False

    def run(self, pack: Pack) -> torch.Tensor:
        """As PackRunner. Raises RankLostError; nothing can be run any more then."""
        if self._over:
            raise RankLostError("the processes that share the model are ending")
        try:
            self._channel.send(pack.to_ints())
            return self._runner.run(pack)
        except Exception as error:
            # How far the others are with it nobody knows.
            self._over = True
            self._failed(error)
            raise RankLostError("one of the processes that share the model is lost") from error


class FollowingTeam:
    """The processes of a model, as those have them that do not lead."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.size = channel.size
        self.least = channel.least

    def hear(self) -> str:
        """What the leader says."""
        return bytes(self._channel.receive()).decode()

    def follow(self, runner: PackRunner) -> None:
        """Runs what the leader runs, until it has gone."""
        while True:
            try:
                ints = self._channel.receive()
            except RuntimeError:
                # One of them has gone between two passes, and so all go.
                return
            runner.run(Pack.from_ints(ints))


def lead(place: Place, device: torch.device, failed: Callable[[Exception], None]) -> Leading:
    """Waits for all others. `failed` is told of a pass that failed, which is the last one."""
    return ALONE if place.size == 1 else LeadingTeam(meet(place, device), failed)


def follow(place: Place, device: torch.device) -> FollowingTeam:
    """Waits for all others."""
    return FollowingTeam(meet(place, device))


def meet(place: Place, device: torch.device) -> Channel:
    """Once in a process, and transformers finds the others by it too."""
    if place.store is not None:
        _stay_on_this_machine()
    dist.init_process_group(
        dist.get_default_backend_for_device(device),
        "env://" if place.store is None else f"file://{place.store}",
        rank=place.rank,
        world_size=place.size,
        timeout=FOREVER,
        device_id=None if device.type == "cpu" else device,
    )
    return Channel(dist.new_group(backend="gloo", timeout=FOREVER))


def _stay_on_this_machine() -> None:
    """By themselves the libraries listen where other machines can reach them."""
    for _, name in socket.if_nameindex():
        if name.startswith("lo"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
            os.environ.setdefault("NCCL_SOCKET_IFNAME", name)


def device_of(place: Place, wanted: torch.device) -> torch.device:
    """The device of this process where all are to use devices of that kind. Raises StartError."""
    kind, found = wanted.type, torch.accelerator.device_count()
    if kind == "cpu":
        if found:
            raise StartError(
                "where there are accelerators transformers puts the parts of a model on them; hide "
                "them for a CPU (CUDA_VISIBLE_DEVICES=)"
            )
        return wanted
    if str(wanted) != kind:
        raise StartError(f"each of {place.size} processes has one of its own; set it to {kind}")
    # What torchrun has started may be on several machines.
    needed = place.local_rank + 1 if place.store is None else place.size
    if needed > found:
        raise StartError(f"{place.size} processes need one each, and there are {found}")
    return torch.device(kind, place.local_rank)
