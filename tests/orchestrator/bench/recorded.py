"""Measurements with figures that a test chose, as if they had been recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.bench.heading import Heading, ModelFacts
from orchestrator.bench.machine import Machine
from orchestrator.bench.measurement import Measurement, Reply
from orchestrator.bench.plan import Wishes
from orchestrator.bench.prompts import BenchPrompt, PromptSet
from orchestrator.bench.way import OURS, Way
from orchestrator.client import Message, SpeculationFigures, TimeFigures

PLAIN = SpeculationFigures(
    rounds=4,
    plain_steps=4,
    draft_tokens_proposed=0,
    draft_tokens_unconverted=0,
    draft_tokens_not_representable=0,
    draft_tokens_rolled_back=0,
    rollbacks=0,
    candidates_proposed=0,
    candidates_examined=0,
    candidates_accepted=0,
    accepted_lengths=(),
    mean_accepted_length=0.0,
    examined_by_position=(),
    accepted_by_position=(),
    lookup_rounds=0,
    lookup_proposed=0,
    lookup_examined=0,
    lookup_accepted=0,
)
NO_TIME = TimeFigures(
    total_seconds=1.0,
    first_token_seconds=0.2,
    prefill_seconds=0.1,
    draft_seconds=0.0,
    convert_seconds=0.0,
    verify_seconds=0.4,
    queue_seconds=0.0,
    network_seconds=0.0,
    plan_seconds=0.0,
)
IDS = (11, 12, 13, 14, 15)


def reply(
    seconds_per_token: float,
    ids: Sequence[int] = IDS,
    *,
    first: float = 0.5,
    speculation: SpeculationFigures | None = PLAIN,
    time: TimeFigures | None = NO_TIME,
) -> Reply:
    """After the first one a token takes so long."""
    return Reply(
        prompt_tokens=7,
        ids=tuple(ids),
        first_tokens=1,
        first_seconds=first,
        last_seconds=first + seconds_per_token * (len(ids) - 1),
        rounds=len(ids) - 1,
        speculation=speculation,
        time=time,
    )


def measured(
    way: Way,
    prompt: str,
    answer: Reply,
    *,
    kind: str = "prose",
    repetition: int = 0,
    temperature: float = 0.0,
) -> Measurement:
    return Measurement(
        target="large",
        draft="small",
        prompt=prompt,
        kind=kind,
        repetition=repetition,
        temperature=temperature,
        seed=3,
        way=way.value,
        place=0,
        reply=answer if way in OURS else replace(answer, speculation=None, time=None),
    )


TARGET = ModelFacts(
    model_id="large",
    revision="abc",
    architecture="LlamaForCausalLM",
    dtype="bfloat16",
    device="cpu",
    parameter_count=135_000_000,
    weight_bytes=270_000_000,
    tokenizer_sha256="0" * 64,
)
DRAFT = replace(TARGET, model_id="small", revision="", weight_bytes=540_000_000)
PROMPTS = PromptSet(
    "prompts.jsonl",
    "1" * 64,
    (
        BenchPrompt("a", "code", (Message("user", "a"),), None),
        BenchPrompt("b", "prose", (Message("user", "b"),), None),
    ),
)
HEADING = Heading(
    version="0.1.0",
    date="2026-01-02T03:04:05+00:00",
    machine=Machine("a processor", 2, 8_000_000_000, (), "Linux", "3.11", "2.13", None),
    threads=1,
    wishes=Wishes(tokens=64, repeat=1, seed=3, temperatures=(0.0,), ways=OURS),
    prompts=PROMPTS,
    notes=("noted",),
)
