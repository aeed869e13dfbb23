"""A side is built from what a service hands out, or the service is refused with the reason; it
encodes prompts and tells what ids spell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.conversion.spans import spans
from orchestrator.prompt.chat_template import ChatMessage
from orchestrator.request import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from orchestrator.side import (
    MAX_TRUNCATED_BYTES,
    EncodedPrompt,
    Side,
    open_conversion,
    open_conversions,
)
from tests.conversion.vocabularies import tokenizers_directory
from tests.miniatures import BOS, EOS
from tests.orchestrator.chat_templates import tokenizer_files
from tests.threaded_server import TokenizerOnly
from uag_common.errors import InvalidRequestError, PeerRefusedError, PromptTooLongError
from uag_common.model import TokenizerFile, tokenizer_sha256
from uag_common.tokenizer.errors import TokenizerError

SIZE = 600
TEXT = TextPrompt("The quick brown fox jumps over the lazy dog")
CHAT = ChatPrompt((ChatMessage("user", "The quick brown fox"), ChatMessage("assistant", "jumps")))


@pytest.fixture(scope="module")
def model(llama: Path) -> TokenizerOnly:
    return TokenizerOnly.read(llama, SIZE)


@pytest.fixture(scope="module")
def plain(model: TokenizerOnly) -> Side:
    """Byte-level, no BOS, a chat template."""
    return Side.build(model.description, model.tokenizer_files)


@pytest.fixture(scope="module")
def starting(gpt2: Path) -> Side:
    """SentencePiece-like, a BOS before each text, no chat template."""
    model = TokenizerOnly.read(gpt2, SIZE)
    spec = json.loads((gpt2 / "tokenizer.json").read_text())
    bos = next(token for token in spec["added_tokens"] if token["content"] == BOS)
    spec["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": BOS, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [],
        "special_tokens": {BOS: {"id": BOS, "ids": [bos["id"]], "tokens": [BOS]}},
    }
    files = [TokenizerFile("tokenizer.json", json.dumps(spec).encode())]
    return Side.build(replace(model.description, tokenizer_sha256=tokenizer_sha256(files)), files)


def real(model: TokenizerOnly, name: str) -> Side:
    files = tokenizer_files(tokenizers_directory() / name)
    description = replace(model.description, tokenizer_sha256=tokenizer_sha256(files))
    return Side.build(replace(description, vocabulary_size=300_000), files)


def drafted(target: Side, draft: Side, prompt: EncodedPrompt) -> tuple[int, ...]:
    """The draft's context when the answer begins."""
    return tuple(open_conversion(target, draft, prompt).draft_ids)


def spelled(side: Side, ids: Sequence[int]) -> str:
    return b"".join(side.vocabulary.spell([*ids])).decode()


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
        ("chat_template.jinja", b"{{ 10 ** (10 ** 9) }}"),
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


def test_a_side_tells_whether_it_has_a_chat_template(plain: Side, starting: Side) -> None:
    assert plain.has_chat_template
    assert not starting.has_chat_template


def test_the_text_of_an_eos_is_text_whatever_the_file_says_of_it(model: TokenizerOnly) -> None:
    spec = json.loads(model.tokenizer_files[0].content)
    eos = next(token for token in spec["added_tokens"] if token["content"] == EOS)
    eos["special"] = False
    files = [TokenizerFile("tokenizer.json", json.dumps(spec).encode())]
    side = Side.build(replace(model.description, tokenizer_sha256=tokenizer_sha256(files)), files)
    assert eos["id"] in side.description.roles.eos_ids
    ids = side.encode(TextPrompt(f"fox{EOS}")).ids
    assert eos["id"] not in ids
    assert spelled(side, ids) == f"fox{EOS}"


def test_ids_are_taken_as_they_stand(starting: Side) -> None:
    (bos,) = starting.encoder.start_ids()
    ids = (7, 300, bos, bos, SIZE - 1)
    assert starting.encode(TokenPrompt(ids)) == EncodedPrompt(ids)


@pytest.mark.parametrize("wrong", [SIZE, 1 << 31, -1])
def test_ids_outside_the_vocabulary_are_refused_with_their_place(plain: Side, wrong: int) -> None:
    for truncate_to in (None, 2):
        with pytest.raises(InvalidRequestError, match=f"id {wrong} is outside") as refused:
            plain.encode(TokenPrompt((1, 2, 3, wrong, 5, wrong)), truncate_to)
        assert refused.value.field == "token_ids.ids[3]"


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        (TextPrompt("a" * 500), "500 bytes, at least"),
        (ChatPrompt((ChatMessage("user", "é" * 250),)), "501 bytes, at least"),
        (TokenPrompt((1,) * 11), "has 11 tokens; the target's context holds 10"),
    ],
)
def test_a_prompt_that_cannot_fit_is_not_encoded_unless_it_is_truncated(
    model: TokenizerOnly, prompt: Prompt, told: str
) -> None:
    small = replace(model.description, context_length=10)
    side = Side.build(small, model.tokenizer_files)
    with pytest.raises(PromptTooLongError, match=told):
        side.encode(prompt)
    assert len(side.encode(prompt, 5).ids) == 5


@pytest.mark.parametrize("prompt", [TEXT, CHAT])
def test_a_truncated_prompt_is_the_end_of_the_whole_one(
    plain: Side, starting: Side, prompt: Prompt
) -> None:
    for side in (plain, starting):
        whole, start = side.encode(prompt), side.encoder.start_ids()
        body = whole.ids[len(start) :]
        for length in (1, 2, len(body) - 1):
            assert side.encode(prompt, length) == EncodedPrompt((*start, *body[-length:]))
        for length in (len(body), len(body) + 1, 10_000):
            assert side.encode(prompt, length) == whole


def test_a_conversation_is_rendered_by_the_draft_itself_unless_it_was_cut(
    plain: Side, starting: Side
) -> None:
    whole, cut = plain.encode(CHAT), plain.encode(CHAT, 6)
    assert drafted(plain, starting, whole) == starting.encode(CHAT).ids
    mirrored = drafted(plain, starting, cut)
    (bos,) = starting.encoder.start_ids()
    assert mirrored[0] == bos
    assert spelled(starting, mirrored) == spelled(plain, cut.ids)


def test_a_draft_mirrors_ids_as_it_does_a_text(plain: Side, starting: Side) -> None:
    for target, draft in ((plain, starting), (starting, plain)):
        ids = target.encode(TEXT).ids
        mirrored = drafted(target, draft, target.encode(TokenPrompt(ids)))
        assert mirrored == drafted(target, draft, target.encode(TEXT))
        assert mirrored == draft.encoder.encode_text(TEXT.text)
        # Without the target's BOS the draft has its own all the same.
        bare = ids[len(target.encoder.start_ids()) :]
        assert drafted(target, draft, target.encode(TokenPrompt(bare))) == mirrored


def test_control_tokens_among_the_ids_part_the_text_of_the_draft(
    plain: Side, starting: Side
) -> None:
    (turn,) = [i for i in plain.vocabulary.control_ids if i not in plain.vocabulary.roles.eos]
    text = TokenPrompt((*plain.vocabulary.encode("fox "), turn, *plain.vocabulary.encode(" jumps")))
    mirrored = drafted(plain, starting, plain.encode(text))
    parts = [spans(starting.vocabulary, part).ids for part in (b"fox ", b" jumps")]
    assert mirrored == (*starting.encoder.start_ids(), *parts[0], *parts[1])


def test_one_vocabulary_on_both_sides_takes_the_ids_as_they_are(starting: Side) -> None:
    for ids in ((7, 300, 8), starting.encode(TEXT).ids):
        assert drafted(starting, starting, starting.encode(TokenPrompt(ids))) == ids


def test_a_vocabulary_of_equal_size_is_another_one(model: TokenizerOnly, plain: Side) -> None:
    spec = json.loads(model.tokenizer_files[0].content)
    table = spec["model"]["vocab"]
    table["x"], table["y"] = table["y"], table["x"]
    files = [TokenizerFile("tokenizer.json", json.dumps(spec).encode())]
    other = Side.build(replace(model.description, tokenizer_sha256=tokenizer_sha256(files)), files)
    assert len(other.vocabulary.pieces) == len(plain.vocabulary.pieces)
    prompt = plain.encode(TextPrompt("xyz jumps"))
    mirrored = drafted(plain, other, prompt)
    assert mirrored != prompt.ids == drafted(plain, plain, prompt)
    assert spelled(other, mirrored) == "xyz jumps"


def test_ids_without_a_token_are_not_read_by_a_draft(plain: Side, starting: Side) -> None:
    """Its embedding may be padded less than the target's."""
    words = plain.vocabulary.encode("fox jumps")
    prompt = plain.encode(TokenPrompt((SIZE - 1, *words, SIZE - 2)))
    assert drafted(plain, plain, prompt) == tuple(words)
    assert spelled(starting, drafted(plain, starting, prompt)) == "fox jumps"


def test_the_space_that_a_target_puts_before_a_text_is_none_of_the_text(
    real_tokenizers: None, model: TokenizerOnly, plain: Side
) -> None:
    del real_tokenizers
    target = real(model, "llama2")
    ids = target.encode(TextPrompt("Hello  there")).ids
    for prompt in (TextPrompt("Hello  there"), TokenPrompt(ids), TokenPrompt(ids[1:])):
        encoded = target.encode(prompt)
        assert spelled(plain, drafted(target, plain, encoded)) == "Hello  there"
    truncated = target.encode(TextPrompt("Hello  there"), 1)
    assert spelled(target, truncated.ids) == " there"
    assert spelled(plain, drafted(target, plain, truncated)) == "there"


def test_an_id_is_told_by_the_text_that_it_spells_by_itself(
    real_tokenizers: None, model: TokenizerOnly
) -> None:
    del real_tokenizers
    side = real(model, "llama2")
    ids = side.encode(TextPrompt("Hi 🙂")).ids
    assert [side.spell(token_id) for token_id in ids] == ["", " Hi", " ", *["\ufffd"] * 4]
    assert side.spell(299_999) == ""


def test_ids_are_shown_as_an_answer_of_them(real_tokenizers: None, model: TokenizerOnly) -> None:
    del real_tokenizers
    for name in ("llama2", "mixtral"):
        side = real(model, name)
        for text in ("Hello  there 🙂", "日本語"):
            assert side.text(side.encode(TextPrompt(text)).ids) == text
    unfinished = real(model, "llama2").encode(TextPrompt("🙂")).ids[:-1]
    assert real(model, "llama2").text(unfinished) == "\ufffd"


def test_a_prompt_that_is_to_be_truncated_may_not_have_any_length(plain: Side) -> None:
    with pytest.raises(PromptTooLongError, match="is to be truncated"):
        plain.encode(TextPrompt("a" * (MAX_TRUNCATED_BYTES + 1)), truncate_to=5)


@pytest.mark.parametrize("same", [True, False])
def test_the_conversions_of_several_answers_part_at_their_first_token(
    model: TokenizerOnly, same: bool
) -> None:
    target = real(model, "qwen2")
    draft = target if same else real(model, "smollm2")
    prompt = target.encode(TextPrompt("The quick brown fox"))
    first, *others = open_conversions(target, draft, prompt, 3)
    before = tuple(first.draft_ids)
    assert [tuple(other.draft_ids) for other in others] == [before] * 2
    first.commit(target.encoder.encode_text(" jumps"))
    first.sync()
    first.propose(draft.encoder.encode_text(" over"))
    assert len(first.draft_ids) > len(before)
    assert [tuple(other.draft_ids) for other in others] == [before] * 2
    assert others[0].position.offset == 0
