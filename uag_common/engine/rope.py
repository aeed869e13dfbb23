"""Rotary embeddings whose frequencies depend on the length of the context.

Transformers takes them from the largest position in a forward pass. So contexts of different
regimes must not share a pass, and what a cache holds is of one regime.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transformers import PretrainedConfig

UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class RopeRegimes:
    """Contexts of up to `boundary` tokens have one set of frequencies, longer ones another."""

    boundary: int = UNBOUNDED

    def long(self, length: int) -> bool:
        """Whether a context of that length is of the second regime."""
        return length > self.boundary

    def reach(self, length: int) -> int:
        """The longest context of the same regime."""
        return UNBOUNDED if self.long(length) else self.boundary


def rope_regimes(config: PretrainedConfig) -> RopeRegimes:
    """Of a model's configuration. LongRoPE (arXiv 2402.13753) is the only scaling of transformers
    with two regimes."""
    boundaries = {
        int(parameters["original_max_position_embeddings"])
        for parameters in _rope_parameters(config)
        if parameters.get("rope_type") == "longrope"
    }
    return RopeRegimes(min(boundaries)) if boundaries else RopeRegimes()


def usable_context(config: PretrainedConfig, length: int) -> int:
    """How much of the context length can be used: with "dynamic" scaling each length past the
    original one has frequencies of its own, so no cached key would be right there."""
    originals = [
        int(parameters.get("original_max_position_embeddings") or length)
        for parameters in _rope_parameters(config)
        if parameters.get("rope_type") == "dynamic"
    ]
    return min((length, *originals))


def _rope_parameters(config: PretrainedConfig) -> Iterator[dict[str, Any]]:
    """Of all layers, or of each type of layers."""
    found = getattr(config.get_text_config(decoder=True), "rope_parameters", None) or {}
    if "rope_type" in found:
        yield found
    else:
        yield from (each for each in found.values() if isinstance(each, dict))
