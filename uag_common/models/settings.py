"""Where fetched models are kept, and whether the network is allowed: read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uag_common.models.errors import BadSettingError

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`root`: the cache directory (need not exist yet). `offline`: never open a connection."""

    root: Path
    offline: bool

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> StoreSettings:
        """UAG_CACHE, else XDG_CACHE_HOME/uag, else ~/.cache/uag; UAG_OFFLINE or HF_HUB_OFFLINE.

        Raises BadSettingError for a flag that is neither true nor false.
        """
        flags = [_flag(environment, name) for name in ("UAG_OFFLINE", "HF_HUB_OFFLINE")]
        return cls(_root(environment), any(flags))


def _root(environment: Mapping[str, str]) -> Path:
    if own := environment.get("UAG_CACHE"):
        return Path(own).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG rules: a relative path is to be ignored.
    parent = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return parent / "uag"


def _flag(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "").strip().lower()
    if value not in TRUE | FALSE:
        raise BadSettingError(f"{name} is {value!r}: set it to 1 or 0")
    return value in TRUE
