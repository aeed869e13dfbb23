"""The network of a model folder. Knows its weights, no context."""

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

from uag_common.engine.placement import OFFLOAD, Placement
from uag_common.engine.tensor_plan import tensor_plan
from uag_common.errors import StartError, first_line
from uag_common.model_settings import ModelServiceSettings
from uag_common.models.memory import DTYPE_BYTES, RUNTIME_BYTES, available_bytes, estimate

MASKED = "ForMaskedLM"
"""How the classes of models end that fill masks."""


def is_masked(config: PretrainedConfig) -> bool:
    """Whether it is a masked language model."""
    return any(name.endswith(MASKED) for name in config.architectures or ())


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
    if device.type == "cpu" and settings.device != OFFLOAD:
        _check_memory(folder, _dtype(settings.dtype, config, device), processes)


def load_network(
    folder: Path, settings: ModelServiceSettings, device: torch.device, processes: int
) -> PreTrainedModel:
    """In the number type that the settings name; where several processes share it, the part of this
    one. Raises StartError."""
    placement = Placement(settings, device)
    try:
        network = _load(folder, settings, device, placement, processes)
        placement.check(network)
    except BaseException:
        placement.clear()
        raise
    return network.eval()


def _load(
    folder: Path,
    settings: ModelServiceSettings,
    device: torch.device,
    placement: Placement,
    processes: int,
) -> PreTrainedModel:
    config = _config(folder, settings)
    kind = AutoModelForMaskedLM if is_masked(config) else AutoModelForCausalLM
    # Each part of one that processes share is read to where it belongs.
    placed = placement.arguments() if processes == 1 else {}
    try:
        network, report = kind.from_pretrained(
            folder,
            output_loading_info=True,
            config=config,
            dtype=_dtype(settings.dtype, config, device),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=settings.trust_remote_code,
            distributed_config=tensor_plan(config, processes),
            **placed,
        )
    except torch.OutOfMemoryError as error:
        raise StartError(f"it does not fit on {settings.device}: {first_line(error)}") from error
    except ValueError as error:
        raise StartError(f"it is no causal language model: {first_line(error)}") from error
    # transformers fills what is missing with random numbers.
    for name in sorted(report["missing_keys"]):
        raise StartError(f"its weights lack {name}; fetch it again")
    return network


def _check_memory(folder: Path, dtype: torch.dtype, processes: int) -> None:
    name = next(name for name in DTYPE_BYTES if getattr(torch, name) is dtype)
    needed = estimate(folder, name).resident_bytes() + (processes - 1) * RUNTIME_BYTES
    free = available_bytes()
    if needed > free:
        raise StartError(
            f"it needs {needed / 1e9:.1f} GB of memory in {name}, {free / 1e9:.1f} GB are free; "
            "choose a smaller number type (DTYPE), DEVICE=offload or another model"
        )


def _dtype(wanted: str, config: PretrainedConfig, device: torch.device) -> torch.dtype:
    if wanted == "auto":
        saved = config.get_text_config(decoder=True).dtype
        return torch.float32 if device.type == "cpu" or saved is None else saved
    dtype = getattr(torch, wanted)
    if not isinstance(dtype, torch.dtype):
        raise StartError(f"{wanted} is no number type")
    return dtype
