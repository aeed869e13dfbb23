"""`uag bench` with tiny models over real services, to its end and to a Ctrl-C."""

from __future__ import annotations

import json
import signal
from argparse import ArgumentParser
from pathlib import Path

import pytest

from orchestrator.bench.record import read_record
from orchestrator.bench.way import OURS, Way
from orchestrator.cli.bench_flags import add_bench_flags, read_choices
from orchestrator.cli.bench_pair import threads
from orchestrator.cli.main import main
from tests.cli.processes import running_uag, uag, wait_until

PROMPTS = '{"prompt": "It rained", "kind": "weather"}\n{"prompt": "def add(", "kind": "code"}\n'


def flags(model: Path, folder: Path) -> tuple[str, ...]:
    prompts = folder / "prompts.jsonl"
    prompts.write_text(PROMPTS, encoding="utf-8")
    models = ("--target", str(model), "--draft", str(model), "--dtype", "float32")
    return (*models, "--prompts", str(prompts), "--out", str(folder / "out"))


def test_every_way_is_measured_and_reported(tiny_model: Path, tmp_path: Path) -> None:
    drawn = ("--temperature", "0", "--temperature", "0.7", "--tokens", "8")
    with running_uag(
        "bench", *flags(tiny_model, tmp_path), *drawn, output=tmp_path / "said.txt"
    ) as running:
        running.wait_for_words("measuring: 0 of 20 requests")
        assert len(running.children()) == 3
        assert running.end() == 0, running.said()
        assert running.left_behind() == []
    said = running.said()
    assert "Memory of both: weights" in said
    for name in ("report.md", "report.json", "report.png", "requests.jsonl"):
        assert f"wrote {tmp_path / 'out' / name}" in said
    measured = list(read_record(tmp_path / "out" / "requests.jsonl"))
    assert {each.way for each in measured} == {way.value for way in OURS}
    assert {each.kind for each in measured} == {"weather", "code"}
    _check_pairs(json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8")))


def _check_pairs(content: dict[str, object]) -> None:
    """Over real services in float32: all ids are the target's, greedy and drawn."""
    assert isinstance(content["pairs"], list)
    assert [pair["temperature"] for pair in content["pairs"]] == [0.0, 0.7]
    for pair in content["pairs"]:
        assert pair["baseline"] == "off"
        ways = {way["way"]: way for way in pair["ways"]}
        for way in ("auto", "forced", "lookup", "model"):
            assert (ways[way]["ids"]["identical"], ways[way]["degraded"]) == (2, 0)
        assert ways["forced"]["model_acceptance"]["examined"] > 0
        assert ways["off"]["model_acceptance"] is None
        assert ways["off"]["metrics"]["tokens_per_round"]["avg"] == 1


def test_ctrl_c_leaves_what_was_measured_and_nothing_running(
    tiny_model: Path, tmp_path: Path
) -> None:
    record = tmp_path / "out" / "requests.jsonl"
    with running_uag(
        "bench", *flags(tiny_model, tmp_path), "--repeat", "1000", output=tmp_path / "said.txt"
    ) as running:
        running.wait_for_words("measuring: 0 of 10000 requests")
        running.children()
        wait_until(lambda: record.read_text(encoding="utf-8").count("\n") > 3)
        running.process.send_signal(signal.SIGINT)
        assert running.end() == 130
        assert running.left_behind() == []
    assert running.said().endswith(
        f"stopped; what was measured is in {record}\nuag bench: interrupted\n"
    )
    assert len(list(read_record(record))) > 3


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "--help"])
    assert ended.value.code == 0
    assert "examples:\n  uag bench\n" in capsys.readouterr().out


def test_a_folder_with_an_older_record_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_text("older\n", encoding="utf-8")
    done = uag("bench", "--out", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"uag bench: {tmp_path / 'requests.jsonl'} is of an earlier benchmark: choose another "
        "--out, or move it away\n"
    )


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    done = uag("bench", "--target", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out"))
    assert done.returncode != 0
    assert not (tmp_path / "out").exists()


def test_what_cannot_work_is_refused_at_once(tmp_path: Path) -> None:
    done = uag("bench", "--prompts", str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (65, "")
    assert f"uag bench: {tmp_path / 'nowhere'}: cannot be read" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--tokens", "1"),
        ("--repeat", "0"),
        ("--limit", "0"),
        ("--seed", "-1"),
        ("--temperature", "-0.1"),
        ("--temperature", "nan"),
        ("--ways", "transformers"),
        ("--ways",),
    ],
    ids=" ".join,
)
def test_wrong_flags_are_refused(arguments: tuple[str, ...]) -> None:
    parser = ArgumentParser()
    add_bench_flags(parser, OURS)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(arguments)
    assert ended.value.code == 2


def test_flags_become_wishes() -> None:
    parser = ArgumentParser()
    add_bench_flags(parser, tuple(Way))
    given = ("--ways", "lookup", "auto", "--temperature", "0.7", "--temperature", "0.7")
    choices = read_choices(parser.parse_args(given), (0.0,), base=Way.TRANSFORMERS)
    assert choices.wishes.ways == (Way.TRANSFORMERS, Way.OFF, Way.AUTO, Way.LOOKUP)
    assert choices.wishes.temperatures == (0.7,)
    assert choices.out.parent == Path("uag-bench")
    plain = read_choices(parser.parse_args(["--limit", "3"]), (0.0, 0.7), base=Way.OFF)
    assert plain.wishes.temperatures == (0.0, 0.7)
    assert len(plain.prompts.prompts) == 3


def test_threads_are_those_of_the_verify_service() -> None:
    assert threads({"UAG_VERIFY_THREADS": "3"}) == 3
    assert threads({"OMP_NUM_THREADS": "1"}) == 1
    assert threads({"UAG_DRAFT_THREADS": "1"}) is None
    assert threads({}) is not None
