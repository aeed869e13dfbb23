"""What a report says before any figure: versions, machine, settings, prompts, models. Plain
values."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.bench.machine import Machine
from orchestrator.bench.plan import Wishes
from orchestrator.bench.prompts import PromptSet
from orchestrator.client import ModelDescription


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as its service describes it. `revision` is empty for a local one, whose tokenizer's
    hash then tells most."""

    model_id: str
    revision: str
    architecture: str
    dtype: str
    device: str
    parameter_count: int
    weight_bytes: int
    tokenizer_sha256: str

    @classmethod
    def of(cls, description: ModelDescription) -> ModelFacts:
        return cls(
            model_id=description.model_id,
            revision=description.revision,
            architecture=description.architecture,
            dtype=description.dtype,
            device=description.device,
            parameter_count=description.parameter_count,
            weight_bytes=description.weight_bytes,
            tokenizer_sha256=description.tokenizer_sha256,
        )


@dataclass(frozen=True, slots=True)
class Heading:
    """`date`: when it began, ISO 8601 in UTC. `threads`: of each model's forward pass, None where
    the environment or the library chooses. `notes`: what a reader must know."""

    version: str
    date: str
    machine: Machine
    threads: int | None
    wishes: Wishes
    prompts: PromptSet
    notes: tuple[str, ...]
