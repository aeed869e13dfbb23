"""Whether sampled answers are drawn from the target's own distribution, on the default pair.

For a true sample the mean of (negative log-likelihood - entropy) over its positions is 0, whatever
the distribution is; the services draw with drafts on, transformers' own model alone judges. A draft
that pushed its own tokens through would be seen as a positive mean: sampled assisted generation of
transformers 5.24 is off by 2.5 nats on this pair.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from tests.lossless import DIRECTIONS
from tests.reference import Reference
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.models.source import resolve

NEW_TOKENS = 64
TEMPERATURES = (1.0, 0.7)
STANDARD_ERRORS = 3.0
HOTTER = 1.25
TEXTS = (
    "The history of the printing press begins",
    "def fibonacci(n: int) -> int:\n",
    "Once upon a time, in a village by the river,",
    "Dear neighbours,\n\nas you may have noticed,",
    "In 1969 two astronauts",
    "The weather in spring is",
    "Ingredients:\n- 200 g flour\n- 2 eggs\n",
    "She opened the door and",
)


@dataclass(slots=True)
class Bias:
    """What was seen of one direction."""

    differences: list[float] = field(default_factory=list)
    too_hot: list[float] = field(default_factory=list)
    """What a sampler at a higher temperature would expect at the same places: a control."""
    proposed: int = 0
    examined: int = 0
    accepted: int = 0

    @property
    def mean(self) -> float:
        return sum(self.differences) / len(self.differences)

    @property
    def control(self) -> float:
        """The mean that the measure must notice."""
        return sum(self.too_hot) / len(self.too_hot)

    @property
    def standard_error(self) -> float:
        squares = sum((value - self.mean) ** 2 for value in self.differences)
        return math.sqrt(squares) / len(self.differences)

    @property
    def proven(self) -> bool:
        """Whether drafts were accepted and rejected."""
        return 0 < self.accepted < self.examined <= self.proposed

    def __str__(self) -> str:
        return (
            f"{len(self.differences)} positions, mean {self.mean:+.4f} nats, standard error "
            f"{self.standard_error:.4f}, control {self.control:+.4f}; candidates: "
            f"{self.proposed} proposed, {self.examined} examined, {self.accepted} accepted"
        )

    def add(self, answer: Answer, differences: Sequence[float], too_hot: Sequence[float]) -> None:
        self.differences.extend(differences)
        self.too_hot.extend(too_hot)
        figures = answer.finished.speculation
        self.proposed += figures.candidates_proposed
        self.examined += figures.candidates_examined
        self.accepted += figures.candidates_accepted


def measure(target: str, draft: str, positions: int) -> Bias:
    """At least so many sampled positions of one direction."""
    folder = resolve(target)
    settings = {"draft_timeout_seconds": "120"}
    with running_services(folder, resolve(draft), orchestrator_settings=settings) as services:
        return measure_running(services, Reference(folder), positions)


def measure_running(services: RunningServices, reference: Reference, positions: int) -> Bias:
    """The same of services that run, whose target is that of `reference`."""
    bias = Bias()
    for text, temperature, seed in _samples():
        if len(bias.differences) >= positions:
            return bias
        answer = _sample(services, text, temperature, seed)
        prompt = reference.text_prompt(text)
        bias.add(answer, *_differences(reference, prompt, answer.ids, temperature))
    raise AssertionError("samples never end")


def _samples() -> Iterator[tuple[str, float, int]]:
    seed = 0
    while True:
        for text in TEXTS:
            yield text, TEMPERATURES[seed % len(TEMPERATURES)], seed
            seed += 1


def _sample(services: RunningServices, text: str, temperature: float, seed: int) -> Answer:
    sampling = pb.SamplingOptions(temperature=temperature, seed=seed)
    speculation = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE, draft_tokens=3)
    return services.generate(
        pb.GenerateRequest(
            text=text, max_new_tokens=NEW_TOKENS, sampling=sampling, speculation=speculation
        ),
        timeout=600,
    )


@torch.inference_mode()
def _differences(
    reference: Reference, prompt: Sequence[int], ids: Sequence[int], temperature: float
) -> tuple[list[float], list[float]]:
    """Negative log-likelihood less entropy at each position of the answer, and what is expected of
    it if the token is drawn at HOTTER times the temperature."""
    whole = torch.tensor([[*prompt, *ids]])
    logits = reference.network(input_ids=whole, logits_to_keep=len(ids) + 1).logits[0, :-1]
    logp = (logits.double() / temperature).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    chosen = logp[torch.arange(len(ids)), torch.tensor(list(ids))]
    hot = (logits.double() / (HOTTER * temperature)).softmax(-1)
    expected = -(hot * logp).sum(-1)
    return (-chosen - entropy).tolist(), (expected - entropy).tolist()


def main() -> int:
    """Both directions, 2,000 positions each."""
    failed = False
    for target, draft in DIRECTIONS:
        bias = measure(target, draft, positions=2_000)
        print(f"{target} + {draft}: {bias}", flush=True)
        failed |= not bias.proven or abs(bias.mean) > STANDARD_ERRORS * bias.standard_error
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
