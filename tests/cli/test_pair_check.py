"""Whether two models make a pair."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from orchestrator.cli.pair_check import NamedFolder, Verdict, check_pair
from orchestrator.cli.pair_text import pair_lines
from orchestrator.cli.probe import TEXTS
from tests.cli.processes import uag


@pytest.fixture
def other(tiny_model: Path, tmp_path: Path) -> Path:
    """The tiny model with a few merges less."""
    folder = tmp_path / "other"
    shutil.copytree(tiny_model, folder)
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    for _ in range(10):
        left, right = content["model"]["merges"].pop()
        del content["model"]["vocab"][left + right]
    path.write_text(json.dumps(content))
    return folder


@pytest.fixture
def wordpiece(tiny_model: Path, tmp_path: Path) -> Path:
    """A vocabulary that forgets parts of a text."""
    folder = tmp_path / "wordpiece"
    shutil.copytree(tiny_model, folder)
    model = models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2, "<eos>": 3}, unk_token="[UNK]")  # noqa: S106
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens(["<eos>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, "eos_token_id": 3}))
    return folder


def named(folder: Path) -> NamedFolder:
    return NamedFolder(folder.name, folder)


def test_the_same_vocabulary(tiny_model: Path) -> None:
    report = check_pair(named(tiny_model), named(tiny_model))
    assert report.verdict is Verdict.SAME
    assert report.probe is not None
    assert report.probe.draft_per_target == 1
    assert report.target.context_length == 512


def test_different_vocabularies(tiny_model: Path, other: Path) -> None:
    report = check_pair(named(other), named(tiny_model))
    assert report.verdict is Verdict.TRANSLATED
    assert report.probe is not None
    assert report.probe.draft_exact == report.probe.target_exact == len(TEXTS)
    assert report.probe.draft_per_target > 1


def test_a_lossy_vocabulary_may_draft_but_not_decide(tiny_model: Path, wordpiece: Path) -> None:
    drafting = check_pair(named(wordpiece), named(tiny_model))
    assert drafting.verdict is Verdict.TRANSLATED
    assert "guesses" in drafting.note
    deciding = check_pair(named(tiny_model), named(wordpiece))
    assert deciding.verdict is Verdict.UNSUPPORTED
    assert "name it as DRAFT" in deciding.note


def test_a_tokenizer_without_exact_bytes_is_unsupported(tiny_model: Path, other: Path) -> None:
    path = other / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["end_of_word_suffix"] = "</w>"
    path.write_text(json.dumps(content))
    report = check_pair(named(other), named(tiny_model))
    assert report.verdict is Verdict.UNSUPPORTED
    assert report.probe is None
    assert "other" in report.note
    assert "choose a model with" in report.note


def test_a_model_without_an_eos_is_unsupported(tiny_model: Path, other: Path) -> None:
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        content = json.loads((other / name).read_text())
        kept = {key: value for key, value in content.items() if not key.startswith("eos")}
        (other / name).write_text(json.dumps(kept))
    report = check_pair(named(tiny_model), named(other))
    assert report.verdict is Verdict.UNSUPPORTED
    assert "eos_token_id" in report.note


def test_the_report_as_text(tiny_model: Path, other: Path) -> None:
    lines = pair_lines(check_pair(named(other), named(tiny_model)))
    assert lines[0].startswith("draft   other")
    assert "context 512 tokens" in lines[1]
    assert lines[2] == "different vocabularies: drafts are translated byte by byte"
    assert lines[3].startswith(f"round trip: all {len(TEXTS)} texts came back byte for byte")


def test_the_command(tiny_model: Path, wordpiece: Path) -> None:
    good = uag("models", "check", str(tiny_model), str(tiny_model))
    assert good.returncode == 0
    assert good.stderr == "reading both vocabularies; a large one takes seconds\n"
    assert "same vocabulary: ids pass as they are\n" in good.stdout
    bad = uag("models", "check", str(tiny_model), str(wordpiece))
    assert bad.returncode == 1
    assert "unsupported: " in bad.stdout
