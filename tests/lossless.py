"""Whether answers are those of the target alone: `python -m tests.lossless FILE`.

FILE has one JSON object a line, `{"id", "chat": [{"role", "content"}], "raw"}`. Each prompt is
answered in its chat and its raw form, with both models of the default pair as the target, over the
real services; the right answer is transformers' own greedy search. In float32 the ids must be
equal; in bfloat16 they may part at a near-tie. A run whose drafts were not proposed, accepted and
rejected proves nothing and fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from orchestrator.prompt.chat_template import ChatMessage
from tests.reference import Reference
from tests.services import Answer, RunningServices, running_services
from uag.orchestrator.v1 import orchestrator_pb2 as pb
from uag_common.models import catalogue
from uag_common.models.source import resolve

NEW_TOKENS = 64
Dtype = Literal["float32", "bfloat16"]
DIRECTIONS = (
    (catalogue.DEFAULT_TARGET, catalogue.DEFAULT_DRAFT),
    (catalogue.DEFAULT_DRAFT, catalogue.DEFAULT_TARGET),
)
DRAFT_TIMEOUT_SECONDS = 120
"""A busy machine must not turn a slow draft into one that is given up."""
NEAR_TIE_SPACINGS = 2
"""The two logits of a near-tie lie within so many steps of bfloat16, each of which may be off by
the rounding of a different order of summation."""


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt in one form."""

    name: str
    request: pb.GenerateRequest
    prompt_ids: tuple[int, ...]

    @property
    def new_tokens(self) -> int:
        return self.request.max_new_tokens


@dataclass(slots=True)
class Tally:
    """What the whole run saw."""

    passed: int = 0
    failed: int = 0
    rounds: int = 0
    tokens: int = 0
    draft_tokens: int = 0
    unconverted: int = 0
    proposed: int = 0
    examined: int = 0
    accepted: int = 0
    model_seconds: float = 0.0
    total_seconds: float = 0.0

    def add(self, answer: Answer) -> None:
        figures, time = answer.finished.speculation, answer.finished.time
        self.rounds += figures.rounds
        self.tokens += len(answer.tokens)
        self.draft_tokens += figures.draft_tokens_proposed
        self.unconverted += figures.draft_tokens_unconverted
        self.proposed += figures.candidates_proposed
        self.examined += figures.candidates_examined
        self.accepted += figures.candidates_accepted
        model = time.prefill_seconds + time.draft_seconds + time.verify_seconds
        self.model_seconds += model
        self.total_seconds += time.total_seconds

    @property
    def proven(self) -> bool:
        return 0 < self.accepted < self.examined

    def __str__(self) -> str:
        other = 1 - self.model_seconds / self.total_seconds if self.total_seconds else 0.0
        return (
            f"{self.tokens} tokens in {self.rounds} rounds, "
            f"{self.tokens / max(1, self.rounds):.2f} a round; "
            f"draft tokens {self.draft_tokens}, unconverted {self.unconverted}; "
            f"candidates: proposed {self.proposed}, examined {self.examined}, "
            f"accepted {self.accepted}; {other:.1%} of the time outside the models"
        )


class PromptFileError(Exception):
    """The file is not of the form that the module's docstring tells."""


def read_prompts(path: Path) -> list[tuple[str, tuple[ChatMessage, ...], str]]:
    """(id, chat, raw) of each line. Raises PromptFileError."""
    prompts = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PromptFileError(f"{path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            chat = tuple(ChatMessage(turn["role"], turn["content"]) for turn in item["chat"])
            prompts.append((str(item["id"]), chat, str(item["raw"])))
        except (ValueError, KeyError, TypeError) as error:
            raise PromptFileError(f"{path}:{number}: {error!r}") from error
    if not prompts:
        raise PromptFileError(f"{path} has no prompts")
    return prompts


def cases(
    prompts: Sequence[tuple[str, tuple[ChatMessage, ...], str]],
    reference: Reference,
    new_tokens: int,
) -> Iterator[Case]:
    """Each prompt in its chat and its raw form, drafted in every round, and the latter as the
    server plans it too."""
    force = pb.SpeculationOptions(mode=pb.SPECULATION_MODE_FORCE)
    for name, chat, raw in prompts:
        messages = [pb.ChatMessage(role=turn.role, content=turn.content) for turn in chat]
        request = pb.GenerateRequest(
            chat=pb.Chat(messages=messages), max_new_tokens=new_tokens, speculation=force
        )
        yield Case(f"{name} chat", request, tuple(reference.chat_prompt(chat)))
        raw_ids = tuple(reference.text_prompt(raw))
        request = pb.GenerateRequest(text=raw, max_new_tokens=new_tokens, speculation=force)
        yield Case(f"{name} raw", request, raw_ids)
        request = pb.GenerateRequest(text=raw, max_new_tokens=new_tokens)
        yield Case(f"{name} raw, planned", request, raw_ids)


def difference(case: Case, answer: Answer, reference: Reference, dtype: Dtype) -> str | None:
    """None if the answer is right; otherwise where it parts from the target's own."""
    expected = reference.answer(case.prompt_ids, case.new_tokens)
    if answer.started.prompt_tokens != len(case.prompt_ids):
        return f"prompt of {answer.started.prompt_tokens} tokens, not {len(case.prompt_ids)}"
    if answer.ids == expected:
        return None
    pairs = enumerate(zip(answer.ids, expected, strict=False))
    at = next((i for i, (got, right) in pairs if got != right), None)
    if at is None:
        return f"{len(answer.ids)} tokens, not {len(expected)}"
    logits = reference.next_logits([*case.prompt_ids, *expected[:at]])
    gap = abs(float(logits[answer.ids[at]] - logits[expected[at]]))
    spacing = float(logits.abs().max()) * torch.finfo(torch.bfloat16).eps
    if dtype == "bfloat16" and gap <= NEAR_TIE_SPACINGS * spacing:
        print(f"  {case.name}: near-tie at token {at}, gap {gap:.3f} (spacing {spacing:.3f})")
        return None
    return f"token {at} is {answer.ids[at]}, not {expected[at]} (logits {gap:.4f} apart)"


def check_direction(
    services: RunningServices, reference: Reference, prompts: list[Case], dtype: Dtype
) -> Tally:
    """Runs all cases of one direction and prints each failure."""
    tally = Tally()
    for case in prompts:
        answer = services.generate(case.request)
        tally.add(answer)
        wrong = difference(case, answer, reference, dtype)
        if answer.finished.HasField("degraded"):
            wrong = f"drafting stopped: {answer.finished.degraded.reason}"
        tally.passed += wrong is None
        tally.failed += wrong is not None
        if wrong is not None:
            print(f"FAILED {case.name}: {wrong}", flush=True)
    return tally


def check_file(path: Path, dtype: Dtype = "float32") -> list[Tally]:
    """Checks all prompts in both directions."""
    return [check_services(path, direction, dtype) for direction in DIRECTIONS]


def check_services(
    path: Path,
    direction: tuple[str, str],
    dtype: Dtype,
    limit: int | None = None,
    new_tokens: int = NEW_TOKENS,
) -> Tally:
    """Checks the first `limit` prompts (all if None) with (target, draft) as services of their
    own."""
    prompts, (target, draft) = read_prompts(path)[:limit], direction
    reference = Reference(resolve(target), getattr(torch, dtype))
    with running_services(
        target,
        draft,
        model_settings={"dtype": dtype},
        orchestrator_settings={"draft_timeout_seconds": str(DRAFT_TIMEOUT_SECONDS)},
    ) as services:
        asked = list(cases(prompts, reference, new_tokens))
        tally = check_direction(services, reference, asked, dtype)
    print(f"target {target}, draft {draft}, {dtype}: {tally}", flush=True)
    return tally


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lossless", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args(arguments)
    try:
        tallies = check_file(options.file, options.dtype)
    except PromptFileError as error:
        print(error, file=sys.stderr)
        return 1
    proven = all(tally.proven for tally in tallies)
    if not proven:
        print("FAILED: drafts were not both accepted and rejected in each direction")
    failed = sum(tally.failed for tally in tallies) + (not proven)
    print(f"{sum(tally.passed for tally in tallies)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
