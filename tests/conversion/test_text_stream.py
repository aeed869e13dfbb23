"""Ids to text as they come."""

from __future__ import annotations

import pytest

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.spans import spans
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.text_stream import TextStream
from tests.conversion import small_tokenizers as small

BYTES = Vocabulary.build(small.byte_level([]), Roles())
MARKS = Vocabulary.build(small.sentencepiece([("\u2581", "a")]), Roles())


def pushed(stream: TextStream, vocabulary: Vocabulary, data: bytes) -> str:
    return stream.push(spans(vocabulary, data).ids)


def test_an_unfinished_character_waits() -> None:
    stream = TextStream(BYTES, at_text_start=True)
    assert pushed(stream, BYTES, b"a\xf0\x9f") == "a"
    assert pushed(stream, BYTES, b"\x9a") == ""
    assert pushed(stream, BYTES, b"\x80b") == "🚀b"
    assert stream.flush() == ""


def test_bad_bytes_are_replaced_as_soon_as_they_are_proven() -> None:
    stream = TextStream(BYTES, at_text_start=True)
    assert pushed(stream, BYTES, b"\xe4\xbd") == ""
    assert pushed(stream, BYTES, b"x\xff") == "\ufffdx\ufffd"
    assert pushed(stream, BYTES, b"\xc3") == ""
    assert stream.flush() == "\ufffd"


@pytest.mark.parametrize(
    ("vocabulary", "start", "text"),
    [(MARKS, True, "a a"), (MARKS, False, " a a"), (BYTES, True, " a a"), (BYTES, False, " a a")],
)
def test_a_family_that_adds_a_space_takes_it_off_at_the_start(
    vocabulary: Vocabulary, start: bool, text: str
) -> None:
    stream = TextStream(vocabulary, at_text_start=start)
    assert "".join(stream.push([token_id]) for token_id in spans(vocabulary, b" a a").ids) == text


def test_only_one_space_goes_and_control_ids_say_nothing() -> None:
    stream = TextStream(MARKS, at_text_start=True)
    assert stream.push([1]) == ""
    assert pushed(stream, MARKS, b"  a") == " a"
    assert stream.push([2, 99_999]) == ""
