"""The settings that the draft and the verify service have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uag_common.service_settings import ServiceSettings
from uag_common.settings import setting


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
        "together, layer after layer), cpu, cuda:0, ...",
        default="auto",
    )
    threads: int = setting(
        "threads of a forward pass on a CPU; 0: as many as there are cores",
        default=0,
        minimum=0,
        maximum=1024,
    )
    max_sessions: int = setting(
        "most sessions that may be open at a time; one more is refused",
        default=256,
        minimum=1,
        maximum=65536,
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
    prefix_cache_mb: int = setting(
        "megabytes of caches that are kept of ended sessions, for later ones that begin with the "
        "same text; 0: none",
        default=512,
        minimum=0,
        maximum=1_000_000,
    )
    trust_remote_code: bool = setting(
        "true runs Python code that comes with the model; only for models you trust",
        default=False,
    )
