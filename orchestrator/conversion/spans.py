"""Bytes to ids and back to the very bytes: total on any input, valid text or not.

Knows one vocabulary. It must not know sides, windows or sessions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from orchestrator.conversion.vocabulary import Vocabulary

# A byte that is no part of a character decodes to 0xDC00 + byte.
_ESCAPE = 0xDC00
_ESCAPED = re.compile("[\udc80-\udcff]")
_RUNS = re.compile("[\udc80-\udcff]|[^\udc80-\udcff]+")


@dataclass(slots=True)
class Spans:
    """Ids, and for each the number of bytes it stands for; the widths sum to the input's length.

    They fall short of it only where a vocabulary has no id at all for what the input holds.
    """

    ids: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)

    def add(self, token_id: int, width: int) -> None:
        """Appends one id."""
        self.ids.append(token_id)
        self.widths.append(width)

    def extend(self, other: Spans) -> None:
        """Appends what another one holds."""
        self.ids.extend(other.ids)
        self.widths.extend(other.widths)


def spans(vocabulary: Vocabulary, data: bytes) -> Spans:
    """The canonical ids of the bytes, without any control id unless the vocabulary is lossy."""
    result = _lossy(vocabulary, data) if vocabulary.lossy else _exact(vocabulary, data)
    if result.widths:
        # What no id at all stands for belongs to the last one.
        result.widths[-1] += len(data) - sum(result.widths)
    return result


def _exact(vocabulary: Vocabulary, data: bytes) -> Spans:
    text = data.decode("utf-8", "surrogateescape")
    if text.isascii() or not _ESCAPED.search(text):
        return _spell_run(vocabulary, text, data)
    result = Spans()
    for run in _RUNS.findall(text):
        if _ESCAPED.match(run):
            _spell_byte(vocabulary, ord(run[0]) - _ESCAPE, result)
        else:
            result.extend(_spell_run(vocabulary, run, run.encode()))
    return result


def _spell_run(vocabulary: Vocabulary, text: str, data: bytes) -> Spans:
    """Valid text by the core; where that spells something else, the cause of it in bytes."""
    ids = vocabulary.encode(text)
    spelled = vocabulary.spell(ids)
    if b"".join(spelled) == data:
        return Spans(ids, list(map(len, spelled)))
    bad = "".join(sorted({character for character in text if not vocabulary.spells(character)}))
    parts = re.split(f"([{re.escape(bad)}])", text) if bad else list(text)
    result = Spans()
    for part in parts:
        if part and part in bad:
            _spell_bytes(vocabulary, part.encode(), result)
        elif part:
            result.extend(_spell_run(vocabulary, part, part.encode()))
    return result


def _spell_bytes(vocabulary: Vocabulary, data: bytes, result: Spans) -> None:
    for byte in data:
        _spell_byte(vocabulary, byte, result)


def _spell_byte(vocabulary: Vocabulary, byte: int, result: Spans) -> None:
    token_id = vocabulary.byte_ids[byte]
    if token_id is not None:
        result.add(token_id, 1)
    elif vocabulary.replacement_ids:
        widths = [0] * (len(vocabulary.replacement_ids) - 1) + [1]
        result.extend(Spans([*vocabulary.replacement_ids], widths))


def _lossy(vocabulary: Vocabulary, data: bytes) -> Spans:
    """Ids by the whole tokenizer, each standing for the text from the id before it to its end."""
    text = data.decode("utf-8", "surrogateescape")
    # An escape is one character, as U+FFFD is, so the offsets hold for both.
    encoding = vocabulary.core.encode(_ESCAPED.sub("\ufffd", text))
    result, seen = Spans(), 0
    for token_id, (_, end) in zip(encoding.ids, encoding.offsets, strict=True):
        width = len(text[seen:end].encode("utf-8", "surrogateescape"))
        result.add(token_id, width)
        seen = max(seen, end)
    return result
