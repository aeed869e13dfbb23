"""Where characters begin and end in bytes that may be no text at all. Knows no tokenizer."""

from __future__ import annotations

from codecs import utf_8_decode

LONGEST_CHARACTER = 4
_SURROGATES = 0xED


def is_continuation(byte: int) -> bool:
    """Whether the byte can only stand inside a character."""
    return byte & 0xC0 == 0x80


def utf8_end(data: bytes | bytearray, start: int = 0) -> int:
    """The end of the whole characters of data[start:].

    What follows it, three bytes at most, is the beginning of a character that may yet be finished.
    Bytes that are provably bad are no such beginning: they lie before the end.
    """
    end = len(data)
    for first in range(end - 1, max(start, end - LONGEST_CHARACTER + 1) - 1, -1):
        if is_continuation(data[first]):
            continue
        if data[first] == _SURROGATES and first + 1 < end and data[first + 1] >= 0xA0:
            # The decoder waits for the third byte, though no character begins so.
            return end
        try:
            _, used = utf_8_decode(data[first:], "strict", False)
        except UnicodeDecodeError:
            return end
        return first + used
    return end


def character_before(data: bytes | bytearray, end: int) -> str:
    """The character that ends at `end`, U+FFFD if none does."""
    start = end - 1
    while start > 0 and end - start < LONGEST_CHARACTER and is_continuation(data[start]):
        start -= 1
    return data[start:end].decode("utf-8", "replace")[-1]


def character_at(data: bytes | bytearray, start: int) -> str:
    """The character that begins at `start`, U+FFFD if none does."""
    return data[start : start + LONGEST_CHARACTER].decode("utf-8", "replace")[0]


def is_boundary(data: bytes | bytearray, position: int) -> bool:
    """Whether no character of the data lies across the position."""
    if position >= len(data) or not is_continuation(data[position]):
        return True
    for start in range(position - 1, max(-1, position - LONGEST_CHARACTER), -1):
        if not is_continuation(data[start]):
            return not _is_character(data[start : start + _length(data[start])], position - start)
    return True


def _length(first: int) -> int:
    """The length of a character by its first byte; 1 for a byte that begins none."""
    if 0xC2 <= first <= 0xDF:
        return 2
    if 0xE0 <= first <= 0xEF:
        return 3
    return 4 if 0xF0 <= first <= 0xF4 else 1


def _is_character(data: bytes | bytearray, longer_than: int) -> bool:
    if len(data) <= longer_than:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
