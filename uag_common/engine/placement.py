"""Where the weights of a network lie: on one device, over several, or partly where they are fetched
from in each pass (accelerate's device maps)."""

from __future__ import annotations

import logging
import tempfile
import weakref
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.integrations.accelerate import get_max_memory

from uag_common.at_end import at_end
from uag_common.engine.parallel import device_of
from uag_common.engine.weights import fetched_sizes
from uag_common.errors import StartError, first_line
from uag_common.model_settings import ModelServiceSettings
from uag_common.ranks.place import SINGLE, Place
from uag_common.settings import variable_name
from uag_common.weight_memory import WeightMemory

log = logging.getLogger(__name__)

SPREAD = "spread"
"""As a device: all of them, each with some of the layers. What comes out is on the first."""
OFFLOAD = "offload"
"""The same, and what does not fit lies in main memory, then on disk."""
MAPS = {SPREAD: "balanced", OFFLOAD: "auto"}
ELSEWHERE = {"cpu", "disk"}


def choose_device(settings: ModelServiceSettings, place: Place = SINGLE) -> torch.device:
    """The device that the settings name for this process, the first where there are several. Raises
    StartError."""
    wanted, name = settings.device, variable_name(type(settings), "device")
    if settings.weight_memory().limits and wanted not in MAPS:
        limits = variable_name(type(settings), "max_memory")
        raise StartError(f"{limits} is for {name}={SPREAD} and {name}={OFFLOAD}, not for {wanted}")
    if place.size == 1:
        return _named(wanted, name)
    if wanted in MAPS:
        raise StartError(f"{name}={wanted}: not together with several processes (TENSOR_PARALLEL)")
    device = _named(wanted, name)
    try:
        return device_of(place, device)
    except StartError as error:
        raise StartError(f"{name}={wanted}: {error}") from error


def _named(wanted: str, name: str) -> torch.device:
    if wanted == SPREAD and not torch.cuda.is_available():
        raise StartError(f"{name}={wanted}: there is no accelerator to spread over")
    if wanted in ("auto", *MAPS):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise StartError(f"{name}={wanted}: cannot be used: {first_line(error)}") from error
    return device


class Placement:
    """Where one network is to be loaded to: `device`, or as the settings spread it."""

    def __init__(self, settings: ModelServiceSettings, device: torch.device) -> None:
        self._map = MAPS.get(settings.device)
        self._memory = settings.weight_memory()
        self._device = device
        self._folder = None
        if settings.device == OFFLOAD:
            # What is written there are weights that lie on disk otherwise than they are used.
            self._folder = tempfile.TemporaryDirectory(prefix="uag-weights-")
            at_end(self._folder.cleanup)

    def arguments(self) -> dict[str, Any]:
        """For `from_pretrained`."""
        if self._map is None:
            return {"device_map": self._device}
        folder = None if self._folder is None else self._folder.name
        return {
            "device_map": self._map,
            "max_memory": _accelerate_memory(self._memory),
            "offload_folder": folder,
        }

    def clear(self) -> None:
        """Removes what was written. Goes with the network that `check` has seen; else call it."""
        if self._folder is not None:
            self._folder.cleanup()

    def check(self, network: PreTrainedModel) -> None:
        """Tells what came to lie elsewhere than on accelerators. Raises StartError if nothing
        should."""
        if self._map is None:
            return
        # Where all of it came to lie on one device, the library tells no map.
        places = {str(place) for place in getattr(network, "hf_device_map", {}).values()}
        left = sorted(places & (ELSEWHERE if torch.cuda.is_available() else {"disk"}))
        if self._folder is not None:
            weakref.finalize(network, self.clear)
        elif left:
            raise StartError(
                f"it does not fit on all devices: a part was left for {left[0]}, which "
                f"DEVICE={OFFLOAD} allows"
            )
        if left:
            log.warning(
                "%.2f GB of the weights lie elsewhere (%s) and are fetched in each pass",
                sum(fetched_sizes(network)) / 1e9,
                " and ".join(left),
            )


def _accelerate_memory(memory: WeightMemory) -> dict[int | str, int]:
    """By accelerate's names of devices; the rest is what is free. Raises StartError."""
    free: dict[int | str, int] = get_max_memory()
    for device, limit in memory.limits:
        named = device if device == "cpu" else int(device.removeprefix("cuda:"))
        if named not in free:
            raise StartError(f"MAX_MEMORY names {device}, which is not there")
        free[named] = limit
    return free
