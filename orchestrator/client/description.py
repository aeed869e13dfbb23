"""What an orchestrator tells of its models and their tokens. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

from uag_common.model import ModelDescription


@dataclass(frozen=True, slots=True)
class Models:
    """Which models answer. `draft`: None while there is no draft service. `chat_template`: whether
    the target has one of its own."""

    target: ModelDescription
    draft: ModelDescription | None
    chat_template: bool


@dataclass(frozen=True, slots=True)
class Tokenization:
    """Ids of the target and what each spells: "" for a control token, U+FFFD for bytes that are no
    whole character."""

    ids: tuple[int, ...]
    texts: tuple[str, ...]
