"""How word pieces go on with a text: with a space before them or without, with a capital or not.

A WordPiece tokenizer forgets both, so this is a guess by the rules of prose: it is proposed, and
never taken for the text. A space is left out only where the tokenizer parts the two sides without
one: encoded again, the guess gives the ids that it was made of. Knows one vocabulary.
"""

from __future__ import annotations

from orchestrator.conversion.vocabulary import Vocabulary
from uag_common.tokenizer.byte_table import CLOSING, is_ideograph

KNOWN_BYTES = 256
"""Of the text before, at its end: enough for a line, in which quotation marks come in pairs."""

_OPENING = frozenset("([{$#@<\u201c\u2018")
_JOINING = frozenset("_/")
_APOSTROPHES = frozenset("'\u2019")
_CONTRACTED = frozenset(("s", "t", "re", "ve", "ll", "d", "m"))
_QUOTES = frozenset('"`')
_SENTENCE_ENDS = frozenset(".!?")


class WordSpelling:
    """Spells the ids of one proposal, in their order."""

    def __init__(self, vocabulary: Vocabulary, before: bytes) -> None:
        """`before`: the text that they go on with, or `KNOWN_BYTES` of it."""
        self._vocabulary = vocabulary
        self._text = before[-KNOWN_BYTES:].decode("utf-8", "ignore")

    def spell(self, token_id: int) -> bytes:
        """What the id adds to the text."""
        word = (self._vocabulary.piece(token_id) or b"").decode().removeprefix(" ")
        added = word if token_id in self._vocabulary.continuations else self._new_word(word)
        self._text += added
        return added.encode()

    def _new_word(self, word: str) -> str:
        space = " " if _stands_apart(self._text, word) else ""
        if self._vocabulary.forgets_case and _has_capital(self._text + space, word):
            return space + _capitalised(word)
        return space + word


def _stands_apart(text: str, word: str) -> bool:
    """Whether there is a space between a text and a word that follows it."""
    if not text or not word or text[-1].isspace():
        return False
    if is_ideograph(text[-1]) or is_ideograph(word[0]):
        return False
    return not (_joins_before(text, word) or _joins_after(text, word))


def _joins_before(text: str, word: str) -> bool:
    """Whether the word is a mark that follows what is before it directly."""
    last, first = text[-1], word[0]
    if first in _QUOTES:
        return _is_open(text, first)
    if first == "-":
        return last.isalnum() or last == "-"
    return first in CLOSING or first in _JOINING or (first == ">" and last in "-=")


def _joins_after(text: str, word: str) -> bool:
    """Whether the text ends with a mark that what comes after it follows directly."""
    last, before = text[-1], text[-2:-1]
    if last in _QUOTES:
        return _is_open(text, last)
    if last in _APOSTROPHES:
        return word in _CONTRACTED or not before.isalnum()
    if last == "-":
        return before.isalnum()
    if last in ".,":
        return before.isdigit() and word.isdigit()
    return last in _OPENING or last in _JOINING


def _is_open(text: str, quote: str) -> bool:
    """Whether a quotation that begins with the mark has not ended in this line."""
    return text.rpartition("\n")[2].count(quote) % 2 == 1


def _has_capital(text: str, word: str) -> bool:
    """Whether the word begins a sentence, or is the one that always has a capital."""
    if word == "i":
        return True
    bare = text.rstrip()
    return not bare or (bare[-1] in _SENTENCE_ENDS and text[-1].isspace())


def _capitalised(word: str) -> str:
    # Not `capitalize`: there are letters whose capital is no single letter, or that of another.
    capital = word[:1].upper()
    return capital + word[1:] if capital.lower() == word[:1] else word
