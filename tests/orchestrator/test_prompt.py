"""Prompts are encoded as the library would, but for text that looks like control tokens."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from orchestrator.prompt.chat_template import ChatMessage, PlainChat
from orchestrator.prompt.encoder import LARGE_TEXT, PromptEncoder
from orchestrator.prompt.encoder import _encode_between as encode_between
from orchestrator.prompt.neutral import NeutralChat
from tests.conversion.vocabularies import tokenizers_directory
from tests.orchestrator.chat_templates import (
    CHATML,
    FAMILIES,
    a_template,
    tokenizer_files,
    with_template,
)
from uag_common.errors import InvalidRequestError
from uag_common.model import TokenizerFile

TEXTS = ("Hello world", " two  spaces ", "a\nb\n\nc", "日本 🙂 é", "1234567", "x")
NAMES = (
    "llama2",
    "codellama",
    "phi3",
    "mixtral",
    "gemma2",
    "qwen2",
    "llama31",
    "starcoder",
    "smollm2",
)
TURNS = (ChatMessage("user", "Hi, who are you?"), ChatMessage("assistant", "A model."))
ANSWER = "<think>\nWho asks?\n</think>\n\n  A model, {'of': \"few\"} words.  "
CONVERSATIONS = (
    TURNS,
    (ChatMessage("user", "  Leading and trailing\n\n"),),
    (ChatMessage("user", "日本 🙂 é\u2581<a>"), ChatMessage("assistant", ANSWER)) * 2,
    (ChatMessage("user", ""), ChatMessage("assistant", "\ue000 private \U000f0000")),
    (ChatMessage("system", "Answer /no_think"), ChatMessage("user", "ABC? 1/2 [x] (y)")),
)


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, real_tokenizers: None) -> Path:
    del real_tokenizers
    return tokenizers_directory() / str(request.param)


@pytest.fixture(scope="module")
def library(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> PromptEncoder:
    return PromptEncoder(tokenizer_files(folder))


def test_raw_text_is_encoded_as_the_library_does(encoder: PromptEncoder, library: Any) -> None:
    for text in TEXTS:
        assert list(encoder.encode_text(text)) == library(text).input_ids


@pytest.mark.parametrize("family", FAMILIES)
def test_a_chat_is_encoded_as_transformers_does(
    encoder: PromptEncoder, library: Any, family: str
) -> None:
    library.chat_template = FAMILIES[family]
    template = a_template(FAMILIES[family], **library.special_tokens_map)
    encoder = with_template(encoder, template)
    for conversation in CONVERSATIONS:
        turns = [{"role": turn.role, "content": turn.content} for turn in conversation]
        expected = library.apply_chat_template(turns, add_generation_prompt=True)["input_ids"]
        assert list(encoder.encode_chat(conversation)) == expected


@pytest.mark.parametrize("family", ["chatml", "placeholders", "brackets"])
def test_in_parts_a_chat_is_encoded_as_a_whole(encoder: PromptEncoder, family: str) -> None:
    """As it is where a message has the text of a control token."""
    template = a_template(FAMILIES[family], bos_token="<s>", eos_token="</s>")  # noqa: S106
    encoder = with_template(encoder, template)
    for conversation in CONVERSATIONS:
        neutral = NeutralChat.of(conversation)
        (unread,) = template.render(neutral.messages)
        own = encoder._own(neutral, unread)
        parts = encode_between(encoder._tokenizer, own, neutral.restore(unread))
        assert tuple(parts) == encoder.encode_chat(conversation)


def test_without_a_template_a_conversation_is_a_text(gpt2: Path) -> None:
    encoder = PromptEncoder(tokenizer_files(gpt2))
    assert not encoder.has_chat_template
    rendered = PlainChat().render(TURNS)
    assert rendered.endswith("Assistant:\n")
    assert encoder.encode_chat(TURNS) == encoder.encode_text(rendered)


def test_a_draft_whose_template_refuses_reads_a_text(llama: Path) -> None:
    encoder = PromptEncoder(tokenizer_files(llama, "{{ raise_exception('no system role') }}"))
    assert encoder.has_chat_template
    with pytest.raises(InvalidRequestError, match="no system role"):
        encoder.encode_chat(TURNS)
    assert encoder.encode_chat_somehow(TURNS) == encoder.encode_text(PlainChat().render(TURNS))


def test_the_start_of_a_text_is_what_stands_before_it(encoder: PromptEncoder, library: Any) -> None:
    plain = library("a", add_special_tokens=False).input_ids
    assert [*encoder.start_ids(), *plain] == library("a").input_ids


def test_what_stands_after_a_text_is_no_start_of_one(real_tokenizers: None) -> None:
    del real_tokenizers
    encoder = PromptEncoder(tokenizer_files(tokenizers_directory() / "distilbert"))
    (start,) = encoder.start_ids()
    assert encoder.encode_text("fox")[0] == start
    assert encoder.encode_text("fox")[-1] != encoder.encode_text("dog")[-2]
    assert len(encoder.encode_text("fox")) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {
            "truncation": {
                "direction": "Right",
                "max_length": 2,
                "strategy": "LongestFirst",
                "stride": 0,
            }
        },
        {
            "padding": {
                "strategy": {"Fixed": 40},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "<eos>",
            }
        },
    ],
)
def test_a_tokenizer_file_that_cuts_or_fills_texts_does_neither(
    llama: Path, changed: dict[str, object]
) -> None:
    spec = json.loads((llama / "tokenizer.json").read_text()) | changed
    encoder = PromptEncoder([TokenizerFile("tokenizer.json", json.dumps(spec).encode())])
    text = "The quick brown fox jumps"
    assert encoder.encode_text(text) == PromptEncoder(tokenizer_files(llama)).encode_text(text)


def test_a_tokenizer_that_merges_at_random_does_not(llama: Path) -> None:
    spec = json.loads((llama / "tokenizer.json").read_text())
    spec["model"]["dropout"] = 0.9
    encoder = PromptEncoder([TokenizerFile("tokenizer.json", json.dumps(spec).encode())])
    text = "The quick brown fox jumps"
    assert encoder.encode_text(text) == PromptEncoder(tokenizer_files(llama)).encode_text(text)


def test_the_template_of_a_configuration_names_its_tokens(llama: Path) -> None:
    source = "{{ bos_token }}{{ eos_token }}{{ sep_token is defined }}{{ messages[0].content }}"
    config = {
        "bos_token": {"content": "<turn>"},
        "eos_token": "<eos>",
        "chat_template": [{"name": "default", "template": source}],
    }
    spec = TokenizerFile("tokenizer.json", (llama / "tokenizer.json").read_bytes())
    told = TokenizerFile("tokenizer_config.json", json.dumps(config).encode())
    plain = PromptEncoder(tokenizer_files(llama, CHATML))
    ids = PromptEncoder([spec, told]).encode_chat([ChatMessage("user", "fox")])
    assert ids[2:] == plain.encode_text("Falsefox")
    assert len({*ids[:2]}) == 2


def test_a_usual_text_does_not_wait_for_a_large_one() -> None:
    encoder = PromptEncoder(tokenizer_files(tokenizers_directory() / "smollm2"))
    large = "The quick brown fox jumps over the lazy dog. " * 60_000
    assert encoder.encode_text(large[: LARGE_TEXT + 1])[:5] == encoder.encode_text(large[:99])[:5]
    ids: list[int] = []
    thread = threading.Thread(target=lambda: ids.extend(encoder.encode_text(large)))
    thread.start()
    time.sleep(0.1)
    encoder.encode_text("A usual text.")
    encoder.encode_text(large[:LARGE_TEXT])
    waited = bool(ids)
    thread.join()
    assert not waited
    assert len(ids) > 100_000
