"""From a folder on disk to a model that has run a test step, or one line that says why not."""

from __future__ import annotations

import logging
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from uag_common.engine.caches import BLOCK_TOKENS, CacheLimits, contexts_of
from uag_common.engine.causal import CausalModel
from uag_common.engine.rope import usable_context
from uag_common.errors import StartError, UagError
from uag_common.model import (
    ModelDescription,
    TokenizerFile,
    TokenRoles,
    tokenizer_sha256,
)
from uag_common.model_settings import ModelServiceSettings
from uag_common.models.memory import DTYPE_BYTES, available_bytes, estimate
from uag_common.models.roles import read_roles
from uag_common.models.source import resolve
from uag_common.settings import variable_name
from uag_common.tokenizer.errors import TokenizerError
from uag_common.tokenizer.token_table import TokenTable

log = logging.getLogger(__name__)

MAX_CONTEXT_LENGTH = (1 << 31) - 1
"""More than the contract has room for; some configurations mean "no limit" by it."""
SPREAD = "spread"
"""As a device: all of them, each with some of the layers. What comes out is on the first."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
"""What is handed out; only the first must be there."""


def load_model(settings: ModelServiceSettings) -> CausalModel:
    """Resolves, checks and loads the model that the settings name, and runs a test step. Raises
    StartError that names the setting and the remedy."""
    device = _device(settings)
    try:
        return load_folder(resolve(settings.model), settings, device)
    except Exception as error:
        # What can be wrong with a folder has no end, and all of it is one line for an operator.
        log.debug("the model cannot be loaded", exc_info=error)
        told = str(error) if isinstance(error, UagError) else _first_line(error)
        name = variable_name(type(settings), "model")
        raise StartError(f"{name}={settings.model}: {told}") from error


def load_folder(folder: Path, settings: ModelServiceSettings, device: torch.device) -> CausalModel:
    """Loads a model from a folder, under the name that the settings give it. Raises StartError."""
    transformers_logging.set_verbosity_error()
    # Its lines come as all others do.
    transformers_logging.disable_default_handler()
    transformers_logging.enable_propagation()
    transformers_logging.disable_progress_bar()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    files = _tokenizer_files(folder)
    config = _config(folder, settings)
    network = _network(folder, config, settings, device)
    vocabulary_size = network.get_input_embeddings().weight.shape[0]
    roles = read_roles(folder, vocabulary_size)
    table = _token_table(files[0], roles, vocabulary_size)
    name, _, revision = settings.model.partition("@")
    context_length = _context_length(config)
    limits = _cache_limits(settings, context_length, network.device)
    contexts = contexts_of(network, limits, deterministic=settings.deterministic)
    description = ModelDescription(
        model_id=name,
        revision=revision,
        architecture=type(network).__name__,
        tokenizer_sha256=tokenizer_sha256(files),
        vocabulary_size=vocabulary_size,
        # One session alone must find room for all of its context.
        context_length=min(context_length, contexts.blocks.tokens),
        dtype=str(network.dtype).removeprefix("torch."),
        device=str(network.device),
        rollback=contexts.rollback,
        parameter_count=network.num_parameters(),
        weight_bytes=sum(p.numel() * p.element_size() for p in network.parameters()),
        roles=roles,
    )
    model = CausalModel(contexts, network.device, description, files, table)
    model.test_step()
    return model


def _cache_limits(
    settings: ModelServiceSettings, context_length: int, device: torch.device
) -> CacheLimits:
    """More than all sessions with full contexts, and what is kept, is of no use."""
    budget = settings.kv_budget(accelerated=device.type != "cpu")
    return CacheLimits(budget, (settings.max_sessions + 1) * (context_length + BLOCK_TOKENS))


def _tokenizer_files(folder: Path) -> tuple[TokenizerFile, ...]:
    present = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    if not present or present[0].name != TOKENIZER_FILES[0]:
        raise StartError(
            f"{folder} has no tokenizer.json; save the model's fast tokenizer there "
            "(AutoTokenizer.from_pretrained(...).save_pretrained(...))"
        )
    return tuple(TokenizerFile(path.name, path.read_bytes()) for path in present)


def _config(folder: Path, settings: ModelServiceSettings) -> PretrainedConfig:
    try:
        return AutoConfig.from_pretrained(
            folder, trust_remote_code=settings.trust_remote_code, local_files_only=True
        )
    except (OSError, ValueError) as error:
        raise StartError(f"its config.json cannot be used: {_first_line(error)}") from error


def _network(
    folder: Path, config: PretrainedConfig, settings: ModelServiceSettings, device: torch.device
) -> PreTrainedModel:
    dtype = _dtype(settings.dtype, config, device)
    if device.type == "cpu":
        _check_memory(folder, dtype)
    try:
        network, report = AutoModelForCausalLM.from_pretrained(
            folder,
            output_loading_info=True,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=settings.trust_remote_code,
            device_map="balanced" if settings.device == SPREAD else None,
        )
    except torch.OutOfMemoryError as error:
        raise StartError(f"it does not fit on all devices: {_first_line(error)}") from error
    except ValueError as error:
        raise StartError(f"it is no causal language model: {_first_line(error)}") from error
    # transformers fills what is missing with random numbers.
    for name in sorted(report["missing_keys"]):
        raise StartError(f"its weights lack {name}; fetch it again")
    if settings.device == SPREAD:
        _check_spread(network)
        return network.eval()
    try:
        return network.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise StartError(f"it does not fit on {device}: {_first_line(error)}") from error


def _check_spread(network: PreTrainedModel) -> None:
    """What does not fit is put into main memory or onto the disk, and read from there again in each
    step: so slow that it looks like a hang."""
    # Where all of it came to lie on one device, the library tells no map.
    places = {str(place) for place in getattr(network, "hf_device_map", {}).values()}
    if torch.cuda.is_available() and (left := places & {"cpu", "disk"}):
        raise StartError(f"it does not fit on all devices: a part was left for {min(left)}")


def _check_memory(folder: Path, dtype: torch.dtype) -> None:
    name = next(name for name in DTYPE_BYTES if getattr(torch, name) is dtype)
    needed, free = estimate(folder, name).resident_bytes(), available_bytes()
    if needed > free:
        raise StartError(
            f"it needs {needed / 1e9:.1f} GB of memory in {name}, {free / 1e9:.1f} GB are free; "
            "choose a smaller number type (DTYPE), another DEVICE or another model"
        )


def _device(settings: ModelServiceSettings) -> torch.device:
    wanted, name = settings.device, variable_name(type(settings), "device")
    if wanted == SPREAD and not torch.cuda.is_available():
        raise StartError(f"{name}={wanted}: there is no accelerator to spread over")
    if wanted in ("auto", SPREAD):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise StartError(f"{name}={wanted}: cannot be used: {_first_line(error)}") from error
    return device


def _dtype(wanted: str, config: PretrainedConfig, device: torch.device) -> torch.dtype:
    if wanted == "auto":
        saved = config.get_text_config(decoder=True).dtype
        return torch.float32 if device.type == "cpu" or saved is None else saved
    dtype = getattr(torch, wanted)
    if not isinstance(dtype, torch.dtype):
        raise StartError(f"{wanted} is no number type")
    return dtype


def _context_length(config: PretrainedConfig) -> int:
    text = config.get_text_config(decoder=True)
    length = getattr(text, "max_position_embeddings", None)
    if not isinstance(length, int) or length < 1:
        raise StartError(
            "the model's config.json tells no context length (max_position_embeddings)"
        )
    return min(usable_context(config, length), MAX_CONTEXT_LENGTH)


def _token_table(tokenizer_json: TokenizerFile, roles: TokenRoles, rows: int) -> TokenTable:
    try:
        return TokenTable.build(tokenizer_json.content.decode(), roles.eos_ids, rows)
    except (TokenizerError, UnicodeDecodeError) as error:
        raise StartError(f"its tokenizer cannot be used: {error}") from error


def _first_line(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"
