"""The compose files as data. Knows their syntax, no engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.images.dockerfile import ROOT

DEPLOY = ROOT / "deploy"
BASE = "compose.yaml"
GPU = "compose.gpu.yaml"

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def read_compose(name: str, given: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A compose file, its variables replaced by those `given`, else by their defaults."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    variables = given or {}
    filled = _VARIABLE.sub(lambda found: variables.get(found[1], found[2] or ""), text)
    content: dict[str, Any] = yaml.safe_load(filled)
    return content


def services_on_gpus() -> dict[str, Any]:
    """The services of both files."""
    base, over = read_compose(BASE)["services"], read_compose(GPU)["services"]
    services: dict[str, Any] = laid_over(base, over)
    return services


def laid_over(base: Any, over: Any) -> Any:
    """By Compose's rules, as far as our files need them: mappings are merged, a command and a
    plain value replaced. A list that Compose would add to the other one is refused."""
    if not isinstance(base, dict):
        return over
    both = {key for key in base.keys() & over if isinstance(base[key], list)}
    assert both <= {"command"}, f"{both} would be added to what is there"
    return base | {key: laid_over(base.get(key), value) for key, value in over.items()}
