"""The network of a model folder, on its device. Knows weights and devices, no context."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
)

from uag_common.engine.parallel import device_of
from uag_common.engine.tensor_plan import tensor_plan
from uag_common.errors import StartError, first_line
from uag_common.model_settings import ModelServiceSettings
from uag_common.models.memory import DTYPE_BYTES, RUNTIME_BYTES, available_bytes, estimate
from uag_common.ranks.place import SINGLE, Place
from uag_common.settings import variable_name

SPREAD = "spread"
"""As a device: all of them, each with some of the layers. What comes out is on the first."""
MASKED = "ForMaskedLM"
"""How the classes of models end that fill masks."""


def is_masked(config: PretrainedConfig) -> bool:
    """Whether it is a masked language model."""
    return any(name.endswith(MASKED) for name in config.architectures or ())


def choose_device(settings: ModelServiceSettings, place: Place = SINGLE) -> torch.device:
    """The device that the settings name for this process, the first where there are several. Raises
    StartError."""
    wanted, name = settings.device, variable_name(type(settings), "device")
    if place.size == 1:
        return _named(wanted, name)
    if wanted == SPREAD:
        raise StartError(f"{name}={wanted}: not together with several processes (TENSOR_PARALLEL)")
    try:
        return device_of(place, _named(wanted, name))
    except StartError as error:
        raise StartError(f"{name}={wanted}: {error}") from error


def _named(wanted: str, name: str) -> torch.device:
    if wanted == SPREAD and not torch.cuda.is_available():
        raise StartError(f"{name}={wanted}: there is no accelerator to spread over")
    if wanted in ("auto", SPREAD):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise StartError(f"{name}={wanted}: cannot be used: {first_line(error)}") from error
    return device


def _config(folder: Path, settings: ModelServiceSettings) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(
            folder, trust_remote_code=settings.trust_remote_code, local_files_only=True
        )
    except (OSError, ValueError) as error:
        raise StartError(f"its config.json cannot be used: {first_line(error)}") from error


def check_network(
    folder: Path, settings: ModelServiceSettings, device: torch.device, processes: int
) -> None:
    """Before anything of it is read. Raises StartError if so many processes cannot share it, or if
    it is too large."""
    config = _config(folder, settings)
    tensor_plan(config, processes)
    if device.type == "cpu":
        _check_memory(folder, _dtype(settings.dtype, config, device), processes)


def load_network(
    folder: Path, settings: ModelServiceSettings, device: torch.device, processes: int
) -> PreTrainedModel:
    """In the number type that the settings name; where several processes share it, the part of this
    one. Raises StartError."""
    config = _config(folder, settings)
    dtype = _dtype(settings.dtype, config, device)
    kind = AutoModelForMaskedLM if is_masked(config) else AutoModelForCausalLM
    try:
        network, report = kind.from_pretrained(
            folder,
            output_loading_info=True,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=settings.trust_remote_code,
            device_map="balanced" if settings.device == SPREAD else None,
            distributed_config=tensor_plan(config, processes),
        )
    except torch.OutOfMemoryError as error:
        raise StartError(f"it does not fit on all devices: {first_line(error)}") from error
    except ValueError as error:
        raise StartError(f"it is no causal language model: {first_line(error)}") from error
    # transformers fills what is missing with random numbers.
    for name in sorted(report["missing_keys"]):
        raise StartError(f"its weights lack {name}; fetch it again")
    if settings.device == SPREAD:
        _check_spread(network)
        return network.eval()
    if processes > 1:
        # Each part was read to where it belongs.
        return network.eval()
    try:
        return network.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise StartError(f"it does not fit on {device}: {first_line(error)}") from error


def _check_spread(network: PreTrainedModel) -> None:
    """What does not fit is put into main memory or onto the disk, and read from there again in each
    step: so slow that it looks like a hang."""
    # Where all of it came to lie on one device, the library tells no map.
    places = {str(place) for place in getattr(network, "hf_device_map", {}).values()}
    if torch.cuda.is_available() and (left := places & {"cpu", "disk"}):
        raise StartError(f"it does not fit on all devices: a part was left for {min(left)}")


def _check_memory(folder: Path, dtype: torch.dtype, processes: int) -> None:
    name = next(name for name in DTYPE_BYTES if getattr(torch, name) is dtype)
    needed = estimate(folder, name).resident_bytes() + (processes - 1) * RUNTIME_BYTES
    free = available_bytes()
    if needed > free:
        raise StartError(
            f"it needs {needed / 1e9:.1f} GB of memory in {name}, {free / 1e9:.1f} GB are free; "
            "choose a smaller number type (DTYPE), another DEVICE or another model"
        )


def _dtype(wanted: str, config: PretrainedConfig, device: torch.device) -> torch.dtype:
    if wanted == "auto":
        saved = config.get_text_config(decoder=True).dtype
        return torch.float32 if device.type == "cpu" or saved is None else saved
    dtype = getattr(torch, wanted)
    if not isinstance(dtype, torch.dtype):
        raise StartError(f"{wanted} is no number type")
    return dtype
