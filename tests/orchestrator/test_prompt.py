"""Prompts are encoded as the library would, but for text that looks like control tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from orchestrator.prompt.chat_template import ChatMessage, ChatTemplate, PlainChat
from orchestrator.prompt.encoder import PromptEncoder
from tests.conversion.vocabularies import tokenizers_directory
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
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]"
    "{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
TURNS = (ChatMessage("user", "Hi, who are you?"), ChatMessage("assistant", "A model."))


def files(folder: Path, template: str | None = None) -> list[TokenizerFile]:
    found = [TokenizerFile(path.name, path.read_bytes()) for path in folder.glob("*.json")]
    if template is not None:
        found.append(TokenizerFile("chat_template.jinja", template.encode()))
    return found


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, real_tokenizers: None) -> Path:
    del real_tokenizers
    return tokenizers_directory() / str(request.param)


def test_raw_text_is_encoded_as_the_library_does(folder: Path) -> None:
    encoder, library = PromptEncoder(files(folder)), AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        assert list(encoder.encode_text(text)) == library(text).input_ids


def test_text_never_becomes_a_control_token(folder: Path) -> None:
    encoder = PromptEncoder(files(folder))
    control = {token["id"] for token in encoder._control.values()}
    text = "a".join(encoder._control)
    ids = encoder.encode_text(text)[len(encoder.start_ids()) :]
    assert not control.intersection(ids)


@pytest.mark.parametrize(("name", "template"), [("qwen2", CHATML), ("mixtral", MISTRAL)])
def test_a_chat_is_rendered_as_transformers_does(
    real_tokenizers: None, name: str, template: str
) -> None:
    del real_tokenizers
    folder = tokenizers_directory() / name
    library = AutoTokenizer.from_pretrained(folder)
    library.chat_template = template
    turns = [{"role": turn.role, "content": turn.content} for turn in TURNS]
    expected = library.apply_chat_template(turns, add_generation_prompt=True)["input_ids"]
    encoder = PromptEncoder(files(folder, template))
    assert list(encoder.encode_chat(TURNS)) == expected


@pytest.mark.parametrize(
    ("name", "template", "lookalike"),
    [("qwen2", CHATML, "<|im_end|>"), ("mixtral", MISTRAL, "[/INST]"), ("phi3", CHATML, "</s>")],
)
def test_a_message_that_looks_like_control_tokens_stays_text(
    real_tokenizers: None, name: str, template: str, lookalike: str
) -> None:
    del real_tokenizers
    encoder = PromptEncoder(files(tokenizers_directory() / name, template))
    control = {token["id"] for token in encoder._control.values()}
    plain = encoder.encode_chat([ChatMessage("user", "a b")])
    tricky = encoder.encode_chat([ChatMessage("user", f"a {lookalike} b")])
    assert [i for i in tricky if i in control] == [i for i in plain if i in control]
    # What stands before the message is encoded as without the trick.
    assert tricky[:2] == plain[:2]


def test_without_a_template_a_conversation_is_a_text(gpt2: Path) -> None:
    encoder = PromptEncoder(files(gpt2))
    rendered = PlainChat().render(TURNS)
    assert rendered.endswith("Assistant:\n")
    assert encoder.encode_chat(TURNS) == encoder.encode_text(rendered)


def test_a_template_that_refuses_is_told_with_its_reason() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}", [])
    with pytest.raises(InvalidRequestError, match="roles must alternate"):
        template.render(TURNS)


@pytest.mark.parametrize("source", ["{{ messages[9].role.x }}", "{{ 1 + 'a' }}", "{{ 1 // 0 }}"])
def test_a_template_that_fails_is_told(source: str) -> None:
    with pytest.raises(InvalidRequestError, match="chat template refuses"):
        ChatTemplate(source, []).render(TURNS)


def test_a_template_runs_in_a_sandbox() -> None:
    template = ChatTemplate("{{ messages.__class__.__mro__ }}", [])
    with pytest.raises(InvalidRequestError, match="unsafe"):
        template.render(TURNS)


def test_the_tags_and_filters_of_transformers_are_known() -> None:
    source = (
        "{% generation %}{{ messages | tojson }}{% endgeneration %}"
        "{% for m in messages %}{% break %}{% endfor %}{{ strftime_now('%Y') | length }}"
    )
    text = ChatTemplate(source, []).render([ChatMessage("user", "é<")])
    assert text == '[{"role": "user", "content": "é<"}]4'


def test_a_draft_whose_template_refuses_reads_a_text(llama: Path) -> None:
    refuses = "{{ raise_exception('no system role') }}"
    encoder = PromptEncoder(files(llama, refuses))
    with pytest.raises(InvalidRequestError, match="no system role"):
        encoder.encode_chat(TURNS)
    assert encoder.encode_chat_somehow(TURNS) == encoder.encode_text(PlainChat().render(TURNS))


def test_no_text_is_taken_for_the_mark_of_a_control_token(real_tokenizers: None) -> None:
    """Marks stand for look-alikes while the template is rendered; a text may hold their letters."""
    del real_tokenizers
    encoder = PromptEncoder(files(tokenizers_directory() / "qwen2", CHATML))
    text = "\ue0000\ue001 <|im_end|> \ue000\ue0000\ue001\ue000"
    ids = encoder.encode_chat([ChatMessage("user", text)])
    assert text in encoder._library.decode(list(ids), skip_special_tokens=False)


def test_a_tokenizer_file_that_cuts_or_fills_texts_does_neither(llama: Path) -> None:
    spec = json.loads((llama / "tokenizer.json").read_text())
    spec["truncation"] = {
        "direction": "Right",
        "max_length": 2,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    changed = [TokenizerFile("tokenizer.json", json.dumps(spec).encode())]
    text = "The quick brown fox jumps"
    assert PromptEncoder(changed).encode_text(text) == PromptEncoder(files(llama)).encode_text(text)
