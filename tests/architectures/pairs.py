"""Which draft goes with which target."""

from __future__ import annotations

from dataclasses import dataclass

from tests.architectures import catalogue
from tests.architectures.architecture import Architecture


@dataclass(frozen=True, slots=True)
class Pair:
    target: Architecture
    draft: Architecture

    @property
    def name(self) -> str:
        return f"{self.target.name}+{self.draft.name}"


ARTICLE = (
    Pair(catalogue.CODE_LLAMA, catalogue.GPT_BIGCODE),
    Pair(catalogue.MIXTRAL, catalogue.VICUNA),
    Pair(catalogue.GEMMA_2, catalogue.VICUNA),
    Pair(catalogue.MIXTRAL, catalogue.QWEN2),
    Pair(catalogue.LLAMA_3_1, catalogue.QWEN2),
    Pair(catalogue.PHI_3, catalogue.QWEN2),
)
"""Those of the overlays."""
MORE = (
    Pair(catalogue.MISTRAL, catalogue.TINY_LLAMA),
    Pair(catalogue.SMOLLM2, catalogue.GEMMA_2),
    Pair(catalogue.FALCON_H1, catalogue.FALCON),
    Pair(catalogue.FALCON, catalogue.FALCON_H1),
    Pair(catalogue.LLAMA_3_1, catalogue.DISTILBERT),
)
ALIKE = tuple(Pair(model, model) for model in catalogue.CAUSAL if model.boundary is not None)
"""The same weights on both sides: a draft that computes as it should is always right."""
