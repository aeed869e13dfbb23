"""Tokenizers of each family, small enough to read, as texts of `tokenizer.json`. Needs no files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Merge = tuple[str, str]

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def added(token_id: int, content: str, *, special: bool, rstrip: bool = False) -> dict[str, Any]:
    """An entry of `added_tokens`."""
    flags = {"single_word": False, "lstrip": False, "normalized": False}
    return {"id": token_id, "content": content, "special": special, "rstrip": rstrip, **flags}


def byte_level(merges: Sequence[Merge], tokens: Sequence[dict[str, Any]] = ()) -> str:
    """Ids 0 to 255 are the bytes in the order of their visible characters, then the merges."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    pieces = [*map(chr, visible), *(chr(256 + shift) for shift in range(256 - len(visible)))]
    part = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    model = _bpe(pieces, merges, byte_fallback=False)
    return _file(model, tokens, pre_tokenizer=part, decoder=part)


def sentencepiece(merges: Sequence[Merge], tokens: Sequence[dict[str, Any]] = ()) -> str:
    """Control ids 0 to 2, the bytes from id 3, then the space, the letters and the merges."""
    control = ["<unk>", "<s>", "</s>"]
    pieces = [*control, *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *LETTERS]
    specials = [added(at, content, special=True) for at, content in enumerate(control)]
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    prepend = {"type": "Prepend", "prepend": "\u2581"}
    return _file(
        _bpe(pieces, merges, byte_fallback=True),
        [*specials, *tokens],
        normalizer={"type": "Sequence", "normalizers": [prepend, mark]},
        decoder={"type": "Strip", "content": " ", "start": 1, "stop": 0},
    )


def wordpiece(words: Sequence[str]) -> str:
    """Control ids 0 and 1 ([PAD], [UNK]), then the words as they are given."""
    control = ["[PAD]", "[UNK]"]
    vocabulary = {word: at for at, word in enumerate([*control, *words])}
    return _file(
        {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
        [added(at, content, special=True) for at, content in enumerate(control)],
        normalizer={
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        pre_tokenizer={"type": "BertPreTokenizer"},
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
    )


def unigram(pieces: Sequence[str]) -> str:
    """Control id 0 (<unk>), then the pieces; no bytes."""
    scored = [("<unk>", 0.0), *((piece, -1.0 * len(pieces)) for piece in pieces)]
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
    return _file(
        {"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": False},
        [added(0, "<unk>", special=True)],
        pre_tokenizer={**space, "split": True},
        decoder={**space, "split": True},
    )


def _bpe(pieces: Sequence[str], merges: Sequence[Merge], *, byte_fallback: bool) -> dict[str, Any]:
    every = [*pieces, *(left + right for left, right in merges)]
    return {
        "type": "BPE",
        "dropout": 0.5,
        "unk_token": "<unk>" if byte_fallback else None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": byte_fallback,
        "byte_fallback": byte_fallback,
        "ignore_merges": False,
        "vocab": {piece: at for at, piece in enumerate(every)},
        "merges": [list(merge) for merge in merges],
    }


def _file(model: dict[str, Any], tokens: Sequence[dict[str, Any]], **stages: Any) -> str:
    names = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
    absent = dict.fromkeys(names)
    return json.dumps(
        {"version": "1.0", **absent, **stages, "added_tokens": [*tokens], "model": model}
    )
