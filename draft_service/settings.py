"""The settings of the draft service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uag_common.model_settings import ModelServiceSettings
from uag_common.settings import setting


@dataclass(frozen=True, kw_only=True)
class DraftSettings(ModelServiceSettings):
    """Read from UAG_DRAFT_*."""

    PREFIX: ClassVar[str] = "UAG_DRAFT_"

    listen: str = setting(
        "host:port to listen on; port 0 takes a free one", default="127.0.0.1:50051"
    )
    min_probability: float = setting(
        "a drafted token less probable than this ends a proposal and is left out of it, "
        "where a command does not say otherwise",
        default=0.0,
        minimum=0.0,
        maximum=1.0,
    )
