"""Ours beside transformers, with miniatures: real services, a real process of transformers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import jsonschema
import psutil
import pytest
import torch

from benchmarks.side_by_side import works
from benchmarks.transformers_client import PeerError, Transformers
from orchestrator.bench import prompts
from orchestrator.bench.way import Way
from tests.cli.processes import ROOT, environment, wait_until
from tests.orchestrator.bench.recorded import TARGET
from tests.reference import Reference

FACTS = replace(TARGET, dtype="float32")
SCHEMA = Path(prompts.__file__).parent / "report.schema.json"
TEXT = "It rained for 40 days; on"
TOKENS = 16


@pytest.fixture(scope="module")
def peer(gpt2: Path, llama: Path) -> Iterator[Transformers]:
    with closing(Transformers(gpt2, llama, FACTS, threads=1)) as made:
        yield made


@pytest.fixture(scope="module")
def reference(gpt2: Path) -> Reference:
    return Reference(gpt2)


@pytest.mark.parametrize(
    "way", [Way.TRANSFORMERS, Way.TRANSFORMERS_UAG, Way.TRANSFORMERS_LOOKUP], ids=lambda w: w.value
)
def test_each_way_gives_the_targets_own_answer(
    way: Way, peer: Transformers, reference: Reference
) -> None:
    prompt = tuple(reference.text_prompt(TEXT))
    reply = peer.answer(way, prompt, TOKENS, temperature=0.0, seed=0)
    assert list(reply.ids) == reference.answer(prompt, TOKENS)
    assert 0 < reply.first_seconds < reply.last_seconds
    assert 1 <= reply.first_tokens < len(reply.ids)
    assert reply.speculation is None
    if way is Way.TRANSFORMERS:
        assert reply.tokens_per_round == 1


def test_a_seed_draws_the_same_again(peer: Transformers, reference: Reference) -> None:
    prompt = tuple(reference.text_prompt("a"))
    drawn = [
        peer.answer(Way.TRANSFORMERS, prompt, TOKENS, temperature=5.0, seed=seed).ids
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_gap_is_that_of_the_logits(peer: Transformers, reference: Reference) -> None:
    context = tuple(reference.text_prompt(TEXT))
    logits = reference.next_logits(context)
    gap = peer.gap(context, 5, 9)
    assert gap.logits == pytest.approx(abs(float(logits[5] - logits[9])), abs=1e-4)
    step = float(logits.abs().max()) * torch.finfo(torch.float32).eps
    assert gap.spacing == pytest.approx(step, rel=1e-3)


def test_what_goes_wrong_there_is_told_here(peer: Transformers) -> None:
    with pytest.raises(PeerError, match="off is no way of transformers"):
        peer.answer(Way.OFF, (5, 6), TOKENS, temperature=0.0, seed=0)


def test_drawn_universal_assisted_generation_is_left_out() -> None:
    assert works(Way.TRANSFORMERS_UAG, 0.0)
    assert not works(Way.TRANSFORMERS_UAG, 0.7)
    assert works(Way.TRANSFORMERS_LOOKUP, 0.7)


def command(gpt2: Path, llama: Path, folder: Path) -> list[str]:
    file = folder / "prompts.txt"
    file.write_text(f"{TEXT}\nThe quick brown\n", encoding="utf-8")
    return [
        *(sys.executable, "-m", "benchmarks.side_by_side", "--one-way"),
        *("--target", str(gpt2), "--draft", str(llama), "--dtype", "float32"),
        *("--prompts", str(file), "--tokens", "12", "--out", str(folder / "out")),
    ]


@pytest.mark.full
def test_the_whole_of_it(gpt2: Path, llama: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        command(gpt2, llama, tmp_path),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Memory of both: weights") == 2
    content = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(
        content
    )
    greedy, drawn = content["pairs"]
    assert greedy["baseline"] == "transformers"
    assert {way["way"] for way in greedy["ways"]} == {way.value for way in Way}
    assert {way["way"] for way in drawn["ways"]} == {way.value for way in Way} - {
        "transformers-uag"
    }
    for way in greedy["ways"]:
        assert way["speed"]["base"] == "transformers"
        assert way["ids"] is None or way["ids"]["identical"] == way["ids"]["compared"] == 2


@pytest.mark.full
def test_a_kill_ends_the_services_and_transformers(gpt2: Path, llama: Path, tmp_path: Path) -> None:
    record = tmp_path / "out" / "requests.jsonl"
    repeated = [*command(gpt2, llama, tmp_path), "--repeat", "1000"]
    with subprocess.Popen(
        repeated, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment()
    ) as process:
        wait_until(lambda: record.is_file() and record.read_text().count("\n") > 3)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(started) >= 4
    _, left = psutil.wait_procs(started, timeout=15)
    assert left == []
    assert record.read_text(encoding="utf-8").count("\n") > 3
