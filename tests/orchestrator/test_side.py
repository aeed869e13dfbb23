"""A side is built from what a service hands out, or the service is refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.conversion.errors import TokenizerError
from orchestrator.side import Side
from tests.threaded_server import TokenizerOnly
from uag_common.errors import PeerRefusedError
from uag_common.model import TokenizerFile, tokenizer_sha256


@pytest.fixture
def model(llama: Path) -> TokenizerOnly:
    return TokenizerOnly.read(llama, 600)


def test_files_that_were_not_described_are_refused(model: TokenizerOnly) -> None:
    with pytest.raises(PeerRefusedError, match="changed on the way"):
        Side.build(replace(model.description, tokenizer_sha256="0"), model.tokenizer_files)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b"\xff"),
        ("tokenizer.json", b"{}"),
        ("other.json", b"{}"),
        ("tokenizer_config.json", b"["),
        ("tokenizer_config.json", b"[]"),
        ("tokenizer_config.json", b"[" * 100_000),
        ("chat_template.jinja", b"{% for %}"),
    ],
)
def test_files_that_cannot_be_used_are_refused(
    model: TokenizerOnly, name: str, content: bytes
) -> None:
    kept = [] if name == "other.json" else model.tokenizer_files
    files = [*(file for file in kept if file.name != name), TokenizerFile(name, content)]
    description = replace(model.description, tokenizer_sha256=tokenizer_sha256(files))
    with pytest.raises((PeerRefusedError, TokenizerError)):
        Side.build(description, files)
