"""The settings of the verify service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uag_common.model_settings import ModelServiceSettings
from uag_common.settings import setting


@dataclass(frozen=True, kw_only=True)
class VerifySettings(ModelServiceSettings):
    """Read from UAG_VERIFY_*."""

    PREFIX: ClassVar[str] = "UAG_VERIFY_"

    listen: str = setting(
        "host:port to listen on; port 0 takes a free one", default="127.0.0.1:50052"
    )
