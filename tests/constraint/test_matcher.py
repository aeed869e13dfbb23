"""The life of a matcher: ends, tokens that are not allowed, limits, and sessions side by side."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import psutil
import pytest

from tests.constraint.masks import after, choice, grammar, ids, regex, schema
from uag_common.constraint.errors import IllegalTokenError
from uag_common.constraint.matcher import LONGEST_PIECE, Grammars, TokenMatcher
from uag_common.decoding import Constraint
from uag_common.errors import InvalidRequestError

END, TURN_END, CONTROL = 256, 257, 258
BYTES = [*(bytes([byte]) for byte in range(256)), b"</s>", b"<turn>", None]
SIZE = 275
GRAMMARS = Grammars(BYTES, [END, TURN_END, END, 9999], SIZE)

# Two bytes are enough to bring the lexer to its limits.
SOON_TOO_COMPLEX = regex("(" * 40 + "a{1,30}" + "){1,30}" * 40)


def test_any_of_the_eos_ids_ends_where_the_answer_may_end() -> None:
    for end in (END, TURN_END):
        matcher = GRAMMARS.matcher(choice("a", "ab"))
        assert ids(matcher.allowed()) == {ord("a")}
        matcher.advance(ord("a"))
        assert ids(matcher.allowed()) == {ord("b"), END, TURN_END}
        matcher.advance(end)
        assert matcher.allowed() is None


def test_only_the_eos_ids_are_left_where_nothing_can_follow() -> None:
    matcher = after(GRAMMARS, choice("a", "ab"), b"ab")
    assert ids(matcher.allowed()) == {END, TURN_END}
    matcher.advance(TURN_END)
    assert matcher.allowed() is None


def test_an_answer_may_be_empty_where_nothing_is_asked_for() -> None:
    matcher = GRAMMARS.matcher(regex("a*"))
    assert ids(matcher.allowed()) == {ord("a"), END, TURN_END}
    matcher.advance(END)
    assert matcher.allowed() is None


def test_what_follows_the_end_does_not_matter() -> None:
    matcher = after(GRAMMARS, choice("a"), [ord("a"), END])
    for token_id in (ord("x"), END, CONTROL, SIZE + 10, -1):
        matcher.advance(token_id)
        assert matcher.allowed() is None


@pytest.mark.parametrize(
    "token_id", [ord("x"), END, TURN_END, CONTROL, SIZE - 1, SIZE, 1 << 40, -1]
)
def test_a_token_that_is_not_allowed_changes_nothing(token_id: int) -> None:
    matcher = after(GRAMMARS, choice("abc"), b"ab")
    for _ in range(2):
        with pytest.raises(IllegalTokenError, match=str(token_id)):
            matcher.advance(token_id)
        assert ids(matcher.allowed()) == {ord("c")}
    matcher.advance(ord("c"))
    with pytest.raises(IllegalTokenError):
        matcher.advance(ord("c"))
    assert ids(matcher.allowed()) == {END, TURN_END}


def test_the_text_of_an_end_token_is_spelled_by_other_tokens() -> None:
    matcher = GRAMMARS.matcher(choice("</s>"))
    assert ids(matcher.allowed()) == {ord("<")}


@pytest.mark.parametrize(
    "constraint",
    [
        regex(r"(?s:.*)"),
        schema(True),
        # Everything but "a", bytes that are no text too.
        grammar('start: T\nT: ~"a"'),
    ],
)
def test_control_tokens_and_padding_are_never_allowed(constraint: Constraint) -> None:
    matcher = GRAMMARS.matcher(constraint)
    for _ in range(5):
        mask = matcher.allowed()
        assert mask is not None
        assert len(mask) == (SIZE + 7) // 8
        assert not ids(mask) - {END, TURN_END} - set(range(255))
        matcher.advance(ord("1"))


def test_characters_in_pieces() -> None:
    """Bytes that begin a character are allowed, and then only what completes it."""
    matcher = after(GRAMMARS, regex("[é-ü]x"), b"")
    assert ids(matcher.allowed()) == {0xC3}
    matcher.advance(0xC3)
    assert ids(matcher.allowed()) == set(range(0xA9, 0xBD))


def test_a_token_too_long_for_the_library_is_left_out() -> None:
    pieces = [b"a", b"a" * LONGEST_PIECE, b"a" * (LONGEST_PIECE + 1), None]
    assert ids(Grammars(pieces, [3], 4).matcher(regex("a*")).allowed()) == {0, 1, 3}


def test_a_token_that_the_library_would_take_for_a_control_token_is_left_out() -> None:
    pieces = [b"a", b"b", b"\xffa", b"\xfea", b"\xff", None]
    matcher = Grammars(pieces, [5], 6).matcher(grammar('start: T\nT: ~"a"'))
    assert ids(matcher.allowed()) == {0, 1, 3, 5}


def test_a_table_may_be_longer_than_the_vocabulary() -> None:
    pieces = [b"a", b"b", None, b"c"]
    assert ids(Grammars(pieces, [2], 3).matcher(regex("[abc]")).allowed()) == {0, 1}


def test_a_model_that_cannot_end_an_answer() -> None:
    with pytest.raises(InvalidRequestError, match="no token that ends"):
        Grammars(BYTES, [], SIZE).matcher(choice("a"))


def test_a_vocabulary_that_cannot_begin_it() -> None:
    with pytest.raises(InvalidRequestError, match=r"constraint.choice.*no text"):
        Grammars([b"a", None], [1], 2).matcher(choice("b"))


def test_a_vocabulary_that_cannot_go_on() -> None:
    matcher = after(Grammars([b"a", None], [1], 2), choice("ab"), [0])
    with pytest.raises(InvalidRequestError, match=r"constraint.choice.*cannot go on.*no text"):
        matcher.allowed()
    with pytest.raises(InvalidRequestError, match="no text"):
        matcher.advance(0)


@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        (SOON_TOO_COMPLEX, "too many expressions"),
        (grammar('start: s\ns: s s | s s s | "a"'), "row has 5.. items"),
    ],
)
def test_limits_of_the_library_end_an_answer_in_words(constraint: Constraint, reason: str) -> None:
    matcher = GRAMMARS.matcher(constraint)
    with pytest.raises(InvalidRequestError, match=reason):
        go_on(matcher, 1000)
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match=reason):
            matcher.allowed()


def go_on(matcher: TokenMatcher, steps: int) -> None:
    for _ in range(steps):
        assert ord("a") in ids(matcher.allowed())
        matcher.advance(ord("a"))


def test_limits_that_one_answer_reaches_do_not_end_another() -> None:
    beside = GRAMMARS.matcher(SOON_TOO_COMPLEX)
    with pytest.raises(InvalidRequestError):
        after(GRAMMARS, SOON_TOO_COMPLEX, b"aaaa").allowed()
    assert ids(beside.allowed()) == {ord("a")}
    assert ids(GRAMMARS.matcher(SOON_TOO_COMPLEX).allowed()) == {ord("a")}


def test_answers_in_many_threads_do_not_mix() -> None:
    constraint = schema({"type": "array", "items": {"type": "integer"}})
    grammars = Grammars(BYTES, [END], SIZE)
    wrong: list[str] = []

    def answer(number: int) -> None:
        text = json.dumps([number] * 50)
        matcher = grammars.matcher(constraint)
        for byte in text.encode():
            if byte not in ids(matcher.allowed()):
                wrong.append(text)
            matcher.advance(byte)
        if ids(matcher.allowed()) != {END}:
            wrong.append(text)

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_flood_of_new_schemas_leaves_memory_as_it_is() -> None:
    """And an answer under each, begun and left."""
    words = random.Random(3)

    def flood(count: int) -> None:
        for _ in range(count):
            names = [f"{words.randrange(1 << 60):x}" for _ in range(6)]
            kinds = {name: {"type": "string", "maxLength": 9} for name in names}
            matcher = GRAMMARS.matcher(schema({"type": "object", "properties": kinds}))
            for byte in f'{{"{names[3]}": "'.encode():
                matcher.allowed()
                matcher.advance(byte)

    flood(200)
    process = psutil.Process()
    family = [process, *process.children()]
    before = sum(one.memory_info().rss for one in family)
    flood(1800)
    grown = sum(one.memory_info().rss for one in family) - before
    assert grown < 30 << 20


class CountedTable(list[bytes | None]):
    """Counts how often its pieces are taken."""

    taken = 0

    def __getitem__(self, index: Any) -> Any:
        self.taken += 1
        return super().__getitem__(index)


def test_the_library_is_told_of_a_vocabulary_at_the_first_constraint() -> None:
    """It takes a second and 100 MB for a large one, which many a model never needs."""
    table = CountedTable(BYTES)
    grammars = Grammars(table, [END], SIZE)
    assert table.taken == 0
    grammars.matcher(choice("a"))
    grammars.matcher(choice("b"))
    assert table.taken == 1
