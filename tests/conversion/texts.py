"""Texts that are hard to cut, and ways to spell them oddly. Knows no session."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary

PHRASES = (
    "The quick brown fox jumps over the lazy dog.",
    " It isn't what they've said; we'll see, I'd say you're right",
    "def add(a, b):\n    return a + b\n\n\nif x == 10:\n\tprint(f'{x!r}')\n",
    "        if stdout is not None:\n            info.append(stdout)\r\n",
    '{"key":[1,2,345678,9.01e-5],"url":"https://example.org/a_b?c=d&e=%20"}',
    " 3.14159265358979 1234567890 007 2024-11-29T18:52:00Z",
    "Hola, ¿qué tal? Übergrößenträger œuvre naïve façade",
    " Привет, как дела сегодня? Съешь ещё этих мягких булок",
    "今日はいい天気ですね。東京都に住んでいます",
    "你好的我是中文文本，没有空格。在一起了",
    " 안녕하세요 세계 값이 최대 글자",
    " नमस्ते दुनिया अवैध ज्यामिति मूल्य फ़ाइल",
    " على %(show_value)d عنصر، يجب أن لا تحتوي",
    "ไฟล์หรือติ๊ก อัพโหลดรูปที่",
    " שלום עולם",
    "🦜👩‍👩‍👧‍👦🏳️‍🌈🚀🇩🇪 👍🏽",
    " cafe\u0301 no\u0308n a\u030a\u0327 \u212b \u2126 \u1e9b\u0323",
    "a\u2581b \u2581\u2581c",
    "</s> <|im_end|><|endoftext|> [INST] <bos><end_of_turn>\u2581<PRE> <table><unused7>",
    "////////--------================________",
    "\x00\x04\x06\x13 \x1d\x7f\x85\xa0\u3000\ufeff\ufffd",
    "𝕳𝖊𝖑𝖑𝖔 \U00040000\U000f0000",
)
BLANKS = (" ", "  ", "\n", "\n\n", "\r\n", "\t", "        ", "\u00a0 ", " \u3000", " \n ", "")

_parts = st.one_of(
    st.sampled_from(PHRASES),
    st.sampled_from(BLANKS),
    st.text(max_size=6),
    st.text(alphabet="aeinrst0129'=-. \n", max_size=12),
)
texts = st.lists(_parts, max_size=8).map("".join)
# Without spaces no cut is near; in blanks and little else the rules of white space look ahead.
solid_texts = texts.map(lambda text: text.replace(" ", "") * 3)
blank_texts = st.lists(
    st.sampled_from((*BLANKS, " ", "\n", "x", ".", "'ll", "12")), min_size=20, max_size=120
).map("".join)
raw_bytes = st.one_of(
    texts.map(str.encode),
    solid_texts.map(str.encode),
    blank_texts.map(str.encode),
    st.binary(max_size=40),
    st.lists(st.one_of(texts.map(str.encode), st.binary(max_size=4)), max_size=5).map(b"".join),
)
# Lengths of pieces; each piece is spelled by itself, so words and characters are cut anywhere.
lengths = st.lists(st.sampled_from((1, 1, 2, 3, 5, 13, 50, 200)), max_size=40)


def spelled(vocabulary: Vocabulary, data: bytes, pieces: Sequence[int] = ()) -> list[int]:
    """Ids of the bytes: canonical ones, or not where pieces are given, which are used in turn."""
    ids: list[int] = []
    for length in pieces:
        ids += spans(vocabulary, data[:length]).ids
        data = data[length:]
    return ids + spans(vocabulary, data).ids


def bytes_of(vocabulary: Vocabulary, ids: Sequence[int]) -> bytes:
    """What the ids spell together."""
    return b"".join(vocabulary.piece(token_id) or b"" for token_id in ids)
