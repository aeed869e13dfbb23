"""The two models of the demo, as they really are in the user's cache (fetched when absent)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from uag_common.models.catalogue import DEFAULT_DRAFT, DEFAULT_TARGET, find
from uag_common.models.memory import estimate
from uag_common.models.progress import TerminalProgress
from uag_common.models.source import resolve

SHARED = Path(os.environ.get("UAG_SHARED", Path(__file__).parents[2] / ".." / "shared"))
TEXTS = [
    "In 2024, 3.14 is π; don't  stop.\n\n\tdef f(x):\n\t    return x ** 2\n",
    "किताब 日本語 🎉👩‍👩‍👧 naïve café — “quoted” ½ ٣",
    "<|im_start|>user\nHi<|im_end|>\n",
]

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def target() -> Path:
    return resolve(DEFAULT_TARGET, progress=TerminalProgress())


@pytest.fixture(scope="module")
def draft() -> Path:
    return resolve(DEFAULT_DRAFT, progress=TerminalProgress())


def read(directory: Path, name: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((directory / name).read_text(encoding="utf-8"))
    return loaded


def test_the_target_is_what_its_authors_published(target: Path) -> None:
    config = read(target, "config.json")
    assert (config["vocab_size"], config["max_position_embeddings"]) == (49152, 8192)
    assert config["tie_word_embeddings"] is True
    assert read(target, "generation_config.json")["eos_token_id"] == 2
    assert "<|im_start|>assistant" in (target / "chat_template.jinja").read_text(encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(target / "tokenizer.json"))
    assert tokenizer.id_to_token(2) == "<|im_end|>"
    assert tokenizer.encode("2024").tokens == ["2", "0", "2", "4"]


def test_the_targets_tokenizer_agrees_with_the_published_one(target: Path) -> None:
    reference = SHARED / "tokenizers" / "smollm2" / "tokenizer.json"
    if not reference.is_file():
        if os.environ.get("CI"):
            pytest.fail(f"{reference} must be there under CI")
        pytest.skip(f"no {reference}: tests/fetch_tokenizers.py fetches it")
    ours = Tokenizer.from_file(str(target / "tokenizer.json"))
    theirs = Tokenizer.from_file(str(reference))
    assert ours.get_vocab() == theirs.get_vocab()
    for text in TEXTS:
        assert ours.encode(text).ids == theirs.encode(text).ids


def test_the_draft_is_what_its_authors_published(draft: Path) -> None:
    config = read(draft, "config.json")
    assert (config["vocab_size"], config["max_position_embeddings"]) == (262144, 32768)
    assert config["tie_word_embeddings"] is True
    assert config["sliding_window"] == 512
    layers = ["sliding_attention"] * 5 + ["full_attention"]
    assert config["layer_types"] == layers * 3
    rope = config["rope_parameters"]
    assert isinstance(rope, dict)
    assert rope["full_attention"]["rope_theta"] == 1e6
    assert rope["sliding_attention"]["rope_theta"] == 1e4
    assert read(draft, "generation_config.json")["eos_token_id"] == [1, 106]
    assert not (draft / "chat_template.jinja").exists()


def test_the_drafts_tokenizer(draft: Path) -> None:
    tokenizer = Tokenizer.from_file(str(draft / "tokenizer.json"))
    assert tokenizer.encode("The capital of France is").ids == [2, 818, 5279, 529, 7001, 563]
    special = {
        token.content: token.special for token in tokenizer.get_added_tokens_decoder().values()
    }
    for control in ("<bos>", "<eos>", "<end_of_turn>", "<unused5>", "<start_of_image>"):
        assert special[control]
    for text in ("\n\n", "\t", "</h1>"):
        assert not special[text]
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize("name", [DEFAULT_TARGET, DEFAULT_DRAFT])
def test_the_catalogue_tells_the_truth(name: str) -> None:
    model = find(name)
    directory = resolve(name)
    stored = sum(path.stat().st_size for path in directory.iterdir())
    assert abs(stored - model.converted_bytes) < 2_000_000
    for dtype, measured in (
        ("float32", model.resident_float32_bytes),
        ("bfloat16", model.resident_bfloat16_bytes),
    ):
        guess = estimate(directory, "float32" if dtype == "float32" else "bfloat16")
        assert 0.85 < guess.resident_bytes() / measured < 1.15


@pytest.mark.parametrize("name", [DEFAULT_TARGET, DEFAULT_DRAFT])
def test_transformers_takes_the_directory_as_it_is(name: str) -> None:
    from transformers import AutoConfig, AutoTokenizer

    directory = resolve(name)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    config = AutoConfig.from_pretrained(directory)
    assert tokenizer.eos_token_id == config.eos_token_id
    written = Tokenizer.from_file(str(directory / "tokenizer.json"))
    for text in TEXTS:
        assert tokenizer(text).input_ids == written.encode(text).ids
