"""A real model without its weights: description, tokenizer files, vocabulary. Nothing here loads
torch, so that an emulation starts in seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.model import ModelDescription, Rollback, TokenizerFile, tokenizer_sha256
from uag_common.models.roles import read_roles
from uag_common.models.source import resolve

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
)
"""Those that a real service hands out (`uag_common.engine.load`, which loads torch)."""


@dataclass(frozen=True)
class TokenizedModel:
    """What is known of a model by its small files. `name` is as `resolve` takes it."""

    name: str
    folder: Path

    @classmethod
    def named(cls, name: str) -> TokenizedModel:
        """Raises as `resolve` does."""
        return cls(name, resolve(name))

    @cached_property
    def files(self) -> tuple[TokenizerFile, ...]:
        present = (self.folder / name for name in TOKENIZER_FILES)
        return tuple(TokenizerFile(p.name, p.read_bytes()) for p in present if p.is_file())

    @cached_property
    def vocabulary(self) -> Vocabulary:
        roles = Roles.ending(self.description.roles.eos_ids)
        return Vocabulary.build(self.files[0].content.decode(), roles)

    @cached_property
    def description(self) -> ModelDescription:
        """That of the emulation: of another architecture, with no weights."""
        config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        size: int = config["vocab_size"]
        return ModelDescription(
            model_id=f"emulated {self.name}",
            revision="",
            architecture="Emulated",
            tokenizer_sha256=tokenizer_sha256(self.files),
            vocabulary_size=size,
            context_length=config["max_position_embeddings"],
            dtype="float32",
            device="cpu",
            rollback=Rollback.TRUNCATE,
            parameter_count=0,
            weight_bytes=0,
            roles=read_roles(self.folder, size),
        )
