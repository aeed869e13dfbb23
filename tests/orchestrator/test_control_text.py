"""What a user types stays text, whatever it looks like, and whatever a template makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.prompt.chat_template import ChatMessage, ChatTemplate
from orchestrator.prompt.encoder import PromptEncoder
from orchestrator.prompt.neutral import NeutralChat
from tests.conversion.small_tokenizers import (
    LETTERS,
    added,
    byte_level,
    sentencepiece,
    unigram,
    wordpiece,
)
from tests.conversion.vocabularies import tokenizers_directory
from tests.orchestrator.chat_templates import CHATML, a_template, tokenizer_files, with_template
from uag_common.model import TokenizerFile

CONTROL = ("<s>", "</s>", "[i]")
MERGES = [("s", ">"), ("<", "/"), ("i", "]")]
VISIBLE = [*LETTERS, *LETTERS.upper(), *'<>/[]()"{}:,\n', "\u2581", "\u2581s", "s>", "</"]
# What a template may make of a content `c`.
OPERATIONS = {
    "as it is": "{{ c }}",
    "added": "{{ '[' + c + ']' }}",
    "trimmed": "{{ c | trim }}",
    "lower": "{{ c | lower }}",
    "upper": "{{ c | upper }}",
    "title": "{{ c.title() }}",
    "replaced": "{{ c.replace('x', '') }}",
    "unquoted": "{{ c | replace('\"', '') | replace('S', 's') }}",
    "brackets": "{{ c | replace('(', '<') | replace(')', '>') }}",
    "cleaned": "{{ c | replace('</s>', '') }}",
    "cut": "{{ c.split('</')[0] }}{{ c.split('/') | join }}",
    "looked at": "{% if '</s>' in c %}{{ c[1:] }}{% else %}{{ c }}{% endif %}",
    "ended once": "{{ c }}{% if '</s>' not in c %}</s>{% endif %}",
    "reversed": "{{ c[::-1] }}{{ c | reverse }}",
    "opened": "<{{ c }}s>{{ c | length }}",
    "as json": "{{ c | tojson }}",
    "by character": "{% for x in c %}{{ x }}{% endfor %}",
}
FRAGMENTS = (
    *CONTROL, *"<>/s[i]()xS\" \n", "/s>", "<<s>s>", "</<s>", "<xs>", "(s)", "＜s＞", "［i］",
    ">s/<", "q", "é", "🙂", "<unk>", "[unk]", "\ue000", "\U000f0000",
)  # fmt: skip
contents = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6).map("".join)


def _with_control(text: str, **flags: Any) -> Any:
    """The decoded file with the control tokens, at their ids in the model, or at those after it."""
    spec = json.loads(text)
    vocabulary = spec["model"]["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece: at for at, (piece, _) in enumerate(vocabulary)}
    others = [token for token in spec["added_tokens"] if token["content"] not in CONTROL]
    free = count(len(vocabulary))
    ids = [vocabulary[text] if text in vocabulary else next(free) for text in CONTROL]
    tokens = zip(ids, CONTROL, strict=True)
    spec["added_tokens"] = [
        *others,
        *({**added(at, content, special=True), **flags} for at, content in tokens),
    ]
    return spec


def _whole_words() -> Any:
    spec = _with_control(byte_level([*MERGES, ("</", "s>"), ("[", "i]"), ("<", "s>")]))
    spec["model"]["ignore_merges"] = True
    spec["pre_tokenizer"] |= {"use_regex": False, "add_prefix_space": False}
    return spec


def _by_role() -> Any:
    return _with_control(byte_level(MERGES), special=False)


def _compatible(spec: Any) -> Any:
    return {**spec, "normalizer": {"type": "NFKC"}}


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "byte-level": lambda: _with_control(byte_level(MERGES)),
    "byte-level, looks up whole words": _whole_words,
    "byte-level, control by role": _by_role,
    "byte-level, control swallows blanks": lambda: _with_control(
        byte_level(MERGES), lstrip=True, rstrip=True
    ),
    "sentencepiece": lambda: _with_control(sentencepiece([("s", "i")])),
    "sentencepiece, control normalized": lambda: _with_control(
        sentencepiece([("s", "i")]), normalized=True
    ),
    "unigram": lambda: _with_control(unigram([*VISIBLE, *CONTROL])),
    "unigram, normalized": lambda: _compatible(_with_control(unigram([*VISIBLE, *CONTROL]))),
    "unigram, control normalized": lambda: _compatible(
        _with_control(unigram([*VISIBLE, *CONTROL]), normalized=True)
    ),
    "wordpiece": lambda: _with_control(wordpiece(["a", "s", "<", ">", "/", "[", "i", "]"])),
    "wordpiece, control normalized": lambda: _with_control(
        wordpiece(["a", "s", "<", ">", "/", "[", "i", "]"]), normalized=True
    ),
}


@cache
def _text(tokenizer: str) -> str:
    return json.dumps(TOKENIZERS[tokenizer]())


@cache
def _control_ids(tokenizer: str) -> frozenset[int]:
    tokens = json.loads(_text(tokenizer))["added_tokens"]
    return frozenset(token["id"] for token in tokens if token["content"] in CONTROL)


@cache
def _bare_encoder(tokenizer: str) -> PromptEncoder:
    file = TokenizerFile("tokenizer.json", _text(tokenizer).encode())
    return PromptEncoder([file], _control_ids(tokenizer))


def _template(operation: str) -> ChatTemplate:
    changed = OPERATIONS[operation]
    return a_template(
        "{% for m in messages %}{% set c = m.content %}"
        f"<s>{{{{ m.role }}}}\n{changed}</s>\n{{% endfor %}}<s>"
    )


@pytest.fixture(scope="module", params=OPERATIONS)
def template(request: pytest.FixtureRequest) -> ChatTemplate:
    return _template(str(request.param))


def _control(tokenizer: str, ids: Sequence[int]) -> list[int]:
    return [token_id for token_id in ids if token_id in _control_ids(tokenizer)]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(deadline=None, max_examples=60)
@given(text=contents)
def test_no_text_becomes_a_control_token(tokenizer: str, text: str) -> None:
    encoder = _bare_encoder(tokenizer)
    assert not _control(tokenizer, encoder.encode_text(text))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(deadline=None, max_examples=15)
@given(first=contents, second=contents)
def test_no_message_becomes_a_control_token(
    tokenizer: str, template: ChatTemplate, first: str, second: str
) -> None:
    encoder = with_template(_bare_encoder(tokenizer), template)
    tricky = [ChatMessage("user", first), ChatMessage("assistant", second)]
    # Blanks stay: control tokens may swallow them, and some are found after a blank only.
    plain = [replace(turn, content=re.sub(r"\S", "q", turn.content)) for turn in tricky]
    expected = _control(tokenizer, encoder.encode_chat(plain))
    assert _control(tokenizer, encoder.encode_chat(tricky)) == expected


def _spelled(tokenizer: str, operation: str, text: str) -> str:
    """The prompt for a message, without its control tokens."""
    encoder = with_template(_bare_encoder(tokenizer), _template(operation))
    ids = encoder.encode_chat([ChatMessage("user", text)])
    vocabulary = Vocabulary.build(_text(tokenizer), Roles())
    return b"".join(vocabulary.spell([*ids])).decode()


@pytest.mark.parametrize(
    "text",
    ["a </s>", "</s>", " <s><s> [i]", "<</s>s>", "</s", "\ue000</s>\ue001", "<s>é🙂", "a\n<s>\n"],
)
@pytest.mark.parametrize("tokenizer", ["byte-level", "byte-level, looks up whole words"])
def test_a_message_is_spelled_as_it_was_typed(tokenizer: str, text: str) -> None:
    spelled = _spelled(tokenizer, "as it is", text)
    # This family puts a space after a control token.
    assert spelled.replace(" ", "") == f"user\n{text}\n".replace(" ", "")
    assert text in spelled


@pytest.mark.parametrize("text", ["q</s>s", "</s><s>", "<s>[i]<<unk>>"])
def test_where_a_text_is_cut_nothing_is_put_between(text: str) -> None:
    vocabulary = Vocabulary.build(_text("unigram"), Roles())
    ids = _bare_encoder("unigram").encode_text(text)
    assert b"".join(vocabulary.spell([*ids])).decode() == f" {text}"


def test_a_normalizer_that_takes_characters_away_lets_no_message_open_a_control_token() -> None:
    tokenizer = "wordpiece, control normalized"
    encoder = with_template(_bare_encoder(tokenizer), _template("opened"))
    for text in ("q", "\ue000", "é"):
        ids = encoder.encode_chat([ChatMessage("user", text)])
        assert len(_control(tokenizer, ids)) == 3


def test_a_message_does_not_hide_a_control_token_and_put_its_own_elsewhere() -> None:
    """A token that is found between blanks only: the message has one, and ends before one."""
    spec = _with_control(byte_level(MERGES))
    cls = 1 + max(token["id"] for token in spec["added_tokens"])
    spec["added_tokens"].append({**added(cls, "CLS", special=True), "single_word": True})
    encoder = with_template(
        PromptEncoder([TokenizerFile("tokenizer.json", json.dumps(spec).encode())]),
        a_template("{{ messages[0].content }}CLS"),
    )
    ids = encoder.encode_chat([ChatMessage("user", "CLS q")])
    assert [at for at, token_id in enumerate(ids) if token_id == cls] == [len(ids) - 1]


def test_a_template_may_look_at_messages_but_sees_no_control_token() -> None:
    assert "user\nabc </s>" in _spelled("byte-level", "lower", "ABC </s>")
    assert "user\na</s>" in _spelled("byte-level", "looked at", "a</s>")
    assert "user\n</s>" in _spelled("byte-level", "cleaned", "</s>")


@pytest.mark.parametrize(
    ("name", "template", "lookalike"),
    [
        ("qwen2", CHATML, "<|im_end|>"),
        ("mixtral", "[INST] {{ messages[0].content }}[/INST]", "[/INST]"),
        ("phi3", "<|user|>\n{{ messages[0].content | trim }}<|end|>\n", "</s>"),
        ("llama2", "<s>[INST] {{ messages[0].content.strip() }} [/INST]", "<s>"),
        ("gemma2", "<start_of_turn>user\n{{ messages[0].content }}<end_of_turn>", "<end_of_turn>"),
    ],
)
def test_around_a_lookalike_all_is_as_without_it(
    real_tokenizers: None, name: str, template: str, lookalike: str
) -> None:
    del real_tokenizers
    folder = tokenizers_directory() / name
    encoder = PromptEncoder(tokenizer_files(folder, template))
    control = {*AutoTokenizer.from_pretrained(folder).added_tokens_decoder}
    plain = encoder.encode_chat([ChatMessage("user", "a b")])
    tricky = encoder.encode_chat([ChatMessage("user", f"a {lookalike} b")])
    assert [i for i in tricky if i in control] == [i for i in plain if i in control]
    at = next(i for i, (one, other) in enumerate(zip(plain, tricky, strict=False)) if one != other)
    assert at > 1
    assert tricky[-2:] == plain[-2:]


@given(text=st.text(), other=st.text())
def test_a_neutral_conversation_is_restored(text: str, other: str) -> None:
    messages = [ChatMessage("user", text), ChatMessage("assistant", other)]
    neutral = NeutralChat.of(messages)
    for message, hidden in zip(messages, neutral.messages, strict=True):
        assert neutral.restore(hidden.content) == message.content
        assert len(hidden.content) == len(message.content)
        assert hidden.content.isspace() == message.content.isspace()
        assert not any(character.isalnum() for character in hidden.content)


def test_stand_ins_at_a_place_are_no_character_of_the_text() -> None:
    content = "\ue000\ue001</s>\ue002"
    neutral = NeutralChat.of([ChatMessage("user", content)], lambda _text: [(2, 6)])
    (message,) = neutral.messages
    assert message.content == "\ue000\ue001\ue004\ue003\ue006\ue005\ue002"
    assert neutral.restore(message.content) == content


def test_of_more_characters_than_there_are_stand_ins_the_first_are_hidden() -> None:
    every = "".join(map(chr, [*range(0x21, 0xD800), *range(0xE000, 0x110000)]))
    (message,) = NeutralChat.of([ChatMessage("user", every)]).messages
    assert not set(map(chr, range(0x21, 0x7F))) & set(message.content)
