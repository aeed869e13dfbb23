"""The settings that the draft and the verify service have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uag_common.errors import StartError
from uag_common.kv.budget import Budget
from uag_common.service_settings import ServiceSettings
from uag_common.settings import setting, variable_name
from uag_common.weight_memory import WeightMemory

ACCELERATOR_SHARE = 0.9
MAIN_MEMORY_SHARE = 0.25
"""Of what is free there; main memory is for other processes too."""


@dataclass(frozen=True, kw_only=True)
class ModelServiceSettings(ServiceSettings):
    """Which model, and how to run it."""

    model: str = setting(
        "the model: a hub id (ORG/NAME or ORG/NAME@REVISION), a folder, a .gguf file, "
        "or a packaged model by name (`uag models list`)"
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "number type of the weights; auto: the model's own on an accelerator, float32 on a CPU",
        default="auto",
    )
    device: str = setting(
        "where the model runs: auto (an accelerator if there is one), spread (all accelerators "
        "together, layer after layer), offload (the same, and what does not fit lies in main "
        "memory, then on disk, and is fetched in each pass: slow), cpu, cuda:0, ...",
        default="auto",
    )
    max_memory: str = setting(
        "with DEVICE=spread or offload, most memory of devices that weights may take, as in "
        "`cuda:0=20GB cuda:1=20GB cpu=100GB`; one that is not named: what is free there",
        default="",
    )
    tensor_parallel: int = setting(
        "processes that share the model, each with a part of every layer: this one and others that "
        "it starts; on accelerators each has one of its own (DEVICE: auto or cuda)",
        default=1,
        minimum=1,
        maximum=16,
    )
    threads: int = setting(
        "threads of a forward pass on a CPU, of all its processes together; 0: as many as there "
        "are cores",
        default=0,
        minimum=0,
        maximum=1024,
    )
    prepack: bool = setting(
        "true keeps the weights of a model on a CPU in the order in which products of a few tokens "
        "read them fastest (float32 and bfloat16; one process); an output layer that shares its "
        "weights with the embedding of the input is held twice then",
        default=True,
    )
    deterministic: bool = setting(
        "true gives a session the same numbers, to the last bit, whatever shares its forward "
        "passes, at a price (docs/operations.md); not for models with experts",
        default=False,
    )
    max_sessions: int = setting(
        "most sessions that may be open at a time; one more is refused",
        default=256,
        minimum=1,
        maximum=65536,
    )
    max_batch: int = setting(
        "most sessions that share a forward pass; 1: each has its own",
        default=256,
        minimum=1,
        maximum=4096,
    )
    max_queue: int = setting(
        "most sessions that may wait to be opened, for memory or for their turn; one more is "
        "refused",
        default=128,
        minimum=1,
        maximum=65536,
    )
    max_queue_seconds: float = setting(
        "a session that would wait to be opened for longer is refused, and told when to come back",
        default=30.0,
        minimum=1,
        maximum=86400,
    )
    idle_seconds: float = setting(
        "a session that gets no command for so many seconds is ended",
        default=300.0,
        minimum=1,
        maximum=86400,
    )
    stalled_seconds: float = setting(
        "when one step of the model has been running for so many seconds, health tells that the "
        "service is not alive (`live`) until it ends; loading is no step",
        default=600.0,
        minimum=1,
        maximum=86400,
    )
    kv_cache: str = setting(
        "memory for the caches of all sessions: a size with its unit (8GB, 800MB), or a share of "
        "what is free once the weights are loaded (40%); auto: 90% on an accelerator, 25% on a CPU",
        default="auto",
    )
    prefix_cache_mb: int = setting(
        "most megabytes of that memory for caches of ended sessions, kept for later ones that "
        "begin with the same text until a running session needs the room; 0: none",
        default=512,
        minimum=0,
        maximum=1_000_000,
    )
    trust_remote_code: bool = setting(
        "true runs Python code that comes with the model; only for models you trust",
        default=False,
    )

    def __post_init__(self) -> None:
        """Raises StartError."""
        self.weight_memory()
        if self.kv_cache != "auto":
            self.kv_budget(accelerated=False)

    def weight_memory(self) -> WeightMemory:
        """That weights may take."""
        try:
            return WeightMemory.parse(self.max_memory)
        except ValueError as error:
            name = variable_name(type(self), "max_memory")
            raise StartError(f"{name}={self.max_memory}: {error}") from None

    def kv_budget(self, *, accelerated: bool) -> Budget:
        """Of the caches, on an accelerator or in main memory."""
        if self.kv_cache == "auto":
            return Budget(None, ACCELERATOR_SHARE if accelerated else MAIN_MEMORY_SHARE)
        try:
            return Budget.parse(self.kv_cache)
        except ValueError as error:
            name = variable_name(type(self), "kv_cache")
            raise StartError(f"{name}={self.kv_cache}: {error}") from None
