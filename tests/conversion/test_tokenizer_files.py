"""The tokenizer's files of a model directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.conversion.errors import TokenizerError
from orchestrator.conversion.tokenizer_files import TokenizerFiles


def test_absent_files_are_empty(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{1}")
    assert TokenizerFiles.read(tmp_path) == TokenizerFiles("{1}", "{}", "{}", None)


def test_all_files_are_read(tmp_path: Path) -> None:
    names = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
    for name in (*names, "chat_template.jinja"):
        (tmp_path / name).write_text(name)
    assert TokenizerFiles.read(tmp_path) == TokenizerFiles(*names, "chat_template.jinja")


def test_a_directory_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"holds no tokenizer\.json"):
        TokenizerFiles.read(tmp_path)
