"""What an architecture of the catalogue is: plain values, and how its configuration is made.

Knows no tokenizer file and no weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transformers import PretrainedConfig, PreTrainedModel

MakeConfig = Callable[[int], PretrainedConfig]
"""The configuration for a vocabulary of so many ids."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The ids by role that the real model's generation configuration names, the preferred EOS
    first."""

    eos_ids: tuple[int, ...]
    bos_id: int | None = None
    pad_id: int | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """A length of the context from which on a model computes otherwise: up to so many tokens are as
    in any model, longer ones are not. `of_all`: all positions are computed anew then, so that no
    forward can tell of contexts on both sides."""

    tokens: int
    of_all: bool = False


@dataclass(frozen=True, slots=True)
class Architecture:
    """A miniature: the real class and the real tokenizer, but small, and with random weights.

    `stands_for`: the real model on the hub. `tokenizer`: its name in the shared folder. `special`:
    what makes it hard, in words for people. `masked`: it fills masks and is no causal model.
    """

    name: str
    stands_for: str
    tokenizer: str
    network: type[PreTrainedModel]
    config: MakeConfig
    vocabulary_size: int
    roles: Roles
    special: str
    chat_template: str | None = None
    boundary: Boundary | None = None
    masked: bool = False
