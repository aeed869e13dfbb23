"""How far back a window begins."""

from __future__ import annotations

from orchestrator.conversion.roles import Roles
from orchestrator.conversion.spans import Spans, spans
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.conversion.window import FURTHEST, NEAREST, RELAXED, Side, Window, window_start
from tests.conversion import small_tokenizers as small

BYTES = Vocabulary.build(small.byte_level([("a", "b")]), Roles())
LETTERS = Vocabulary.build(small.sentencepiece([("a", "b")]), Roles())
WORDS = Vocabulary.build(small.wordpiece(["ab", "##ab", "c"]), Roles())


def side(vocabulary: Vocabulary, widths: list[int], floor: int = 0) -> Side:
    made = Side(vocabulary)
    made.extend(Spans([260] * floor, widths[:floor]), 0)
    made.part(sum(widths[:floor]))
    made.extend(Spans([260] * len(widths[floor:]), widths[floor:]), made.start)
    return made


def singles(data: bytes, vocabulary: Vocabulary = BYTES, floor: int = 0) -> Window:
    return window_start(side(vocabulary, [1] * len(data), floor), data)


def test_an_empty_side_begins_where_its_segment_does() -> None:
    assert window_start(Side(BYTES, start=1), b" ") == Window(0, 1, capped=False)


def test_it_begins_at_the_nearest_space_that_is_far_enough() -> None:
    assert singles(b"xx yy zz") == Window(5, 5, capped=False)
    assert singles(b"xx yy z") == Window(5, 5, capped=False)
    assert singles(b"xx yy ") == Window(2, 2, capped=False)
    assert NEAREST == 2


def test_it_does_not_pass_a_control_token() -> None:
    assert singles(b"x xxxxxxxx", floor=4) == Window(4, 4, capped=False)


def test_far_enough_any_proven_cut_will_do() -> None:
    data = b"\n" + b"x" * 40
    assert singles(data, LETTERS) == Window(len(data) - RELAXED, len(data) - RELAXED, capped=False)


def test_at_the_furthest_it_gives_up() -> None:
    data = b"=" * 200
    at = len(data) - FURTHEST
    assert singles(data) == Window(at, at, capped=True)


def test_giving_up_it_keeps_characters_whole() -> None:
    data = "🦜".encode() * 50
    first = singles(data).first
    assert first % 4 == 0
    assert FURTHEST <= len(data) - first < FURTHEST + 4


def test_ids_that_share_a_byte_are_not_parted() -> None:
    shared = side(BYTES, [1, 0, 0, 1, 1, 1])
    assert shared.start_of(3) == shared.start_of(1)
    data = b"x =="
    assert window_start(shared, data) == Window(1, 1, capped=False)


def test_a_lossy_side_begins_at_a_word() -> None:
    ids = spans(WORDS, b"c ababab").ids
    words = Side(WORDS, ids=ids, ends=[1, 4, 6, 8])
    assert window_start(words, b"c ababab") == Window(1, 1, capped=False)


def test_tokens_are_dropped_and_appended() -> None:
    made = side(BYTES, [2, 3, 4])
    assert made.ends == [2, 5, 9]
    made.drop(1)
    made.extend(Spans([7, 8], [1, 1]), 2)
    made.push(9, 4)
    assert (made.ids, made.ends) == ([260, 7, 8, 9], [2, 3, 4, 4])


def test_a_segment_may_begin_after_bytes_that_no_token_stands_for() -> None:
    made = side(BYTES, [2])
    made.part(5)
    made.push(7, 6)
    assert made.start_of(1) == 5
    assert made.start_of(2) == 6
