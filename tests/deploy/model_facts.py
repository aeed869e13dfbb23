"""How much GPU memory a target takes: facts of the models, and one formula. Knows no manifest.

The facts are those of the models' config.json; the parameters were counted by transformers from
such a configuration, and agree with the size of the files on the hub.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GIB = 2**30
CARD_BYTES = 80 * GIB
USABLE = 0.9
"""The rest is the CUDA context's, and lost to gaps between tensors."""
MEGABYTE = 1_000_000
DISK_BYTES_A_SECOND = 125 * MEGABYTE
LOADING_MARGIN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Target:
    """`tokens`: of the longest session that the plan is made for. `intermediate`: of all experts
    that see a token. `stored_bytes`: of a parameter, on the hub."""

    parameters: int
    layers: int
    kv_heads: int
    head_size: int
    hidden: int
    intermediate: int
    tokens: int
    context_length: int
    stored_bytes: int = 2

    @property
    def weights(self) -> int:
        return self.parameters * 2

    @property
    def file_bytes(self) -> int:
        return self.parameters * self.stored_bytes

    @property
    def loading_seconds(self) -> float:
        """From a slow disk, and what comes before and after."""
        return self.file_bytes / DISK_BYTES_A_SECOND + LOADING_MARGIN_SECONDS

    def caches(self, sessions: int) -> int:
        token = self.layers * self.kv_heads * self.head_size * 2 * 2
        return token * self.tokens * sessions

    @property
    def activations(self) -> int:
        """Of the prompt that is in work; others wait."""
        return self.tokens * (4 * self.hidden + 3 * self.intermediate) * 2

    def total(self, sessions: int, kept_megabytes: int) -> int:
        kept = kept_megabytes * MEGABYTE
        return self.weights + self.caches(sessions) + kept + self.activations

    def on_each(self, cards: int, sessions: int, kept_megabytes: int) -> float:
        """Of so many cards, if they share all but the activations."""
        shared = self.total(sessions, kept_megabytes) - self.activations
        return shared / cards + self.activations

    def cards(self, sessions: int, kept_megabytes: int) -> int:
        return math.ceil(self.total(sessions, kept_megabytes) / (CARD_BYTES * USABLE))


TARGETS = {
    "codellama/CodeLlama-13b-Instruct-hf": Target(
        13_016_028_160, 40, 40, 128, 5120, 13824, tokens=8192, context_length=16384
    ),
    "google/gemma-2-9b": Target(
        9_241_705_984, 42, 8, 256, 3584, 14336, tokens=8192, context_length=8192, stored_bytes=4
    ),
    "meta-llama/Llama-3.1-70B": Target(
        70_553_706_496, 80, 8, 128, 8192, 28672, tokens=32768, context_length=131072
    ),
    "microsoft/Phi-3-medium-128k-instruct": Target(
        13_960_238_080, 40, 10, 128, 5120, 17920, tokens=32768, context_length=131072
    ),
    "mistralai/Mixtral-8x22B-Instruct-v0.1": Target(
        140_630_071_296, 56, 8, 128, 6144, 2 * 16384, tokens=8192, context_length=65536
    ),
}
