"""What each id of a tokenizer spells, in bytes. Knows the alphabets, no encoding."""

from __future__ import annotations

import re
from collections.abc import Sequence

from uag_common.tokenizer.tokenizer_spec import Family, TokenizerSpec

SPACE_MARK = "\u2581"
WORDPIECE_CONTINUATION = "##"

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
# Places that were left free in the vocabularies of BERT. No text is ever encoded so.
_FREE_PLACE = re.compile(r"\[unused\d+\]")
CLOSING = frozenset(".,!?;:)]}%'\u2019\u201d\u2026")
"""WordPiece forgets white space. That these follow a word directly is the best guess."""
_IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


def _byte_alphabet() -> dict[str, int]:
    """The visible characters that byte-level tokenizers write for the 256 bytes."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    shifted = {chr(256 + position): byte for position, byte in enumerate(hidden)}
    return {chr(byte): byte for byte in visible} | shifted


_BYTE_OF = _byte_alphabet()


def pieces(spec: TokenizerSpec) -> list[bytes | None]:
    """What each id spells, in order of the ids; None for a control token and for no token."""
    ids = [*spec.vocabulary.values(), *(token.id for token in spec.added)]
    table: list[bytes | None] = [None] * (max(ids) + 1)
    for text, token_id in spec.vocabulary.items():
        table[token_id] = _spelling(text, spec)
    for token in spec.added:
        if token.control:
            table[token.id] = None
        elif token.content not in spec.vocabulary or spec.family is Family.BYTE_LEVEL:
            table[token.id] = token.content.encode()
    return table


def byte_ids(spec: TokenizerSpec, table: Sequence[bytes | None]) -> list[int | None]:
    """The id of each of the 256 bytes, None where the vocabulary has none."""
    ids: list[int | None] = [None] * 256
    if spec.family is Family.WORDPIECE:
        return ids
    for token_id, piece in enumerate(table):
        if piece is not None and len(piece) == 1:
            ids[piece[0]] = token_id
    if spec.model.get("byte_fallback"):
        # A byte may have a piece of its own beside that of its character; the first is meant.
        for byte in range(256):
            ids[byte] = spec.vocabulary.get(f"<0x{byte:02X}>", ids[byte])
    return ids


def fallback_ids(spec: TokenizerSpec) -> frozenset[int]:
    """The ids of the pieces `<0x00>` to `<0xFF>`, where these mean bytes."""
    if not spec.model.get("byte_fallback"):
        return frozenset()
    named = (f"<0x{byte:02X}>" for byte in range(256))
    return frozenset(spec.vocabulary[name] for name in named if name in spec.vocabulary)


def is_ideograph(character: str) -> bool:
    """Whether it is a word to WordPiece that is written without spaces."""
    return any(ord(character) in block for block in _IDEOGRAPHS)


def _spelling(text: str, spec: TokenizerSpec) -> bytes | None:
    if spec.family is Family.BYTE_LEVEL:
        spelled = [_BYTE_OF.get(character) for character in text]
        known = [byte for byte in spelled if byte is not None]
        return bytes(known) if len(known) == len(text) else text.encode()
    if spec.family is Family.WORDPIECE:
        return None if text == spec.unknown_word else _word_spelling(text)
    byte = _BYTE_PIECE.fullmatch(text) if spec.model.get("byte_fallback") else None
    return bytes.fromhex(byte[1]) if byte else text.replace(SPACE_MARK, " ").encode()


def _word_spelling(text: str) -> bytes | None:
    if text.startswith(WORDPIECE_CONTINUATION):
        return text.removeprefix(WORDPIECE_CONTINUATION).encode()
    if _FREE_PLACE.fullmatch(text):
        return None
    joined = text in CLOSING or (len(text) == 1 and is_ideograph(text))
    return text.encode() if joined else f" {text}".encode()
