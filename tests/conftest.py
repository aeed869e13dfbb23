"""Fixtures that more than one folder of tests needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conversion.vocabularies import (
    TokenizersMissingError,
    shared_directory,
    tokenizers_directory,
)
from tests.miniatures import miniature


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Llama with a byte-level tokenizer and a chat template."""
    return miniature(tmp_path_factory.mktemp("models") / "llama", "llama")


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small GPT-2 with a SentencePiece-like tokenizer, a BOS and no chat template."""
    return miniature(tmp_path_factory.mktemp("models") / "gpt2", "gpt2")


@pytest.fixture(scope="session")
def shared_prompts() -> Path:
    """The prompts of the shared folder. Without them: a failure where CI is set, else a skip."""
    path = shared_directory() / "cases" / "prompts.jsonl"
    if not path.is_file():
        reason = f"no prompts at {path}: set UAG_SHARED, or run `make lossless PROMPTS=your file`"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def real_tokenizers() -> None:
    """Skips where the shared folder is absent; where CI is set that is a failure."""
    try:
        tokenizers_directory()
    except TokenizersMissingError as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
