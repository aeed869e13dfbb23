"""Where an answer ends, and what of it is shown when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.stopping import AnswerText, EosStop, SequenceStop, Stop, Stopping, TokenStop
from tests.orchestrator.spelled_answer import NOTHING, spelled_answer

Piece = str | bytes | None


def stop_at(*sequences: str, include_stop: bool = False, min_new_tokens: int = 0) -> Stopping:
    return replace(
        NOTHING, sequences=sequences, include_stop=include_stop, min_new_tokens=min_new_tokens
    )


def begin(stopping: Stopping, *pieces: Piece) -> AnswerText:
    spelled = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return spelled_answer(stopping, spelled)


def run(stopping: Stopping, *pieces: Piece) -> tuple[Stop | None, list[tuple[str, ...]]]:
    """Each token by itself up to the end: the stop, and what each push and the end release."""
    answer, released = begin(stopping, *pieces), list[tuple[str, ...]]()
    for token_id in range(len(pieces)):
        stop = answer.push(token_id)
        released.append(answer.release())
        if stop is not None:
            return stop, released
    answer.finish()
    return None, [*released, answer.release()]


def test_text_that_may_become_a_stop_sequence_waits_whole() -> None:
    stop, released = run(stop_at("STOP"), "a", "b ST", None, "O", "R", " S", "TOP!")
    assert stop == SequenceStop("STOP")
    assert released == [("a",), (), (), (), ("b ST", "", "O", "R"), (), (" ", "")]


def test_the_end_shows_what_waited() -> None:
    assert run(stop_at("STOP"), "a ST", "O") == (None, [(), (), ("a ST", "O")])


@pytest.mark.parametrize(
    ("include_stop", "texts"), [(False, ["x", "", ""]), (True, ["x<", "/s", ">"])]
)
def test_text_past_the_match_is_cut(include_stop: bool, texts: list[str]) -> None:
    answer = begin(stop_at("</s>", include_stop=include_stop), "x<", "/s", b">\n\xf0")
    assert [answer.push(token_id) for token_id in range(3)][-1] == SequenceStop("</s>")
    answer.finish()
    assert [*answer.release()] == texts


def test_a_match_that_will_be_shown_anyway_does_not_wait() -> None:
    stop, released = run(stop_at("STOP", include_stop=True), "a ST", "O", "P now")
    assert stop == SequenceStop("STOP")
    assert released == [("a ST",), ("O",), ("P",)]


@pytest.mark.parametrize("include_stop", [False, True])
@pytest.mark.parametrize(
    ("eos", "stops", "expected"),
    [({1}, set(), EosStop(1)), (set(), {1}, TokenStop(1)), ({1}, {1}, EosStop(1))],
)
def test_an_id_beats_the_sequence_that_its_text_completes(
    eos: set[int], stops: set[int], expected: Stop, include_stop: bool
) -> None:
    by_id = replace(
        stop_at("ab", include_stop=include_stop),
        eos_ids=frozenset(eos),
        stop_token_ids=frozenset(stops),
    )
    texts = [("a",), ("b",)] if include_stop else [(), ("a", "")]
    assert run(by_id, "a", "b", "c") == (expected, texts)


def test_a_control_token_that_stops_has_no_text_to_include() -> None:
    by_id = replace(NOTHING, eos_ids=frozenset({1}), include_stop=True)
    assert run(by_id, "a", None) == (EosStop(1), [("a",), ("",)])


@pytest.mark.parametrize(("least", "tokens"), [(0, 2), (2, 2), (3, 4), (4, 4), (5, 5), (6, None)])
def test_a_match_before_enough_tokens_is_passed_over(least: int, tokens: int | None) -> None:
    stop, released = run(stop_at("ab", "bc", min_new_tokens=least), "a", "b", "a", "b", "c")
    assert (stop is not None) == (tokens is not None)
    assert tokens is None or len(released) == tokens
    assert stop in (None, SequenceStop("bc" if tokens == 5 else "ab"))


def test_what_is_passed_over_is_shown_at_once() -> None:
    _, released = run(stop_at("ab", min_new_tokens=9), "a", "b", "c")
    assert released == [(), ("a", "b"), ("c",), ()]


def test_the_end_of_a_match_that_was_passed_over_may_begin_another() -> None:
    stop, released = run(stop_at("abab", min_new_tokens=3), "ab", "ab", "ab")
    assert stop == SequenceStop("abab")
    assert released == [(), ("ab",), ("", "")]


ROCKET = "🚀".encode()


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_character_over_several_tokens_stops_where_it_is_whole(cut: int) -> None:
    stop, released = run(stop_at("🚀"), "a", ROCKET[:cut], ROCKET[cut:] + b"b")
    assert stop == SequenceStop("🚀")
    assert released == [("a",), ("",), ("",)]


def test_another_character_of_the_same_beginning_is_no_match() -> None:
    stop, released = run(stop_at("🚀"), ROCKET[:3], b"\x81")
    assert (stop, released) == (None, [("",), ("🚁",), ()])


def test_characters_are_code_points() -> None:
    assert run(stop_at("e\u0301"), "caf", "e", "\u0301") == (
        SequenceStop("e\u0301"),
        [("caf",), (), ("", "")],
    )
    assert run(stop_at("\u0301"), "cafe", "\u0301")[1] == [("cafe",), ("",)]
    assert run(stop_at("\u00e9"), "cafe", "\u0301") == (None, [("cafe",), ("\u0301",), ()])


def test_bad_bytes_are_the_replacement_character_to_a_sequence_too() -> None:
    assert run(stop_at("\ufffd!"), "a", b"\xf0\x9f", "!") == (
        SequenceStop("\ufffd!"),
        [("a",), ("",), ("",)],
    )
    assert run(stop_at("\ufffd"), "\ufffd") == (SequenceStop("\ufffd"), [("",)])


def test_a_character_that_the_end_cuts_off_stops_nothing() -> None:
    answer = begin(stop_at("\ufffd", "a\ufffd"), "a", ROCKET[:2])
    assert answer.push(0) is None
    assert answer.push(1) is None
    assert answer.release() == ()
    answer.finish()
    assert answer.release() == ("a", "\ufffd")


def test_a_character_is_left_out_if_its_tokens_are_shown_already() -> None:
    assert run(NOTHING, "a", ROCKET[:2]) == (None, [("a",), ("",), ()])


def test_an_unfinished_character_before_an_eos_is_shown_with_it() -> None:
    by_id = replace(NOTHING, eos_ids=frozenset({1}))
    assert run(by_id, ROCKET[:2], "x") == (EosStop(1), [("",), ("\ufffd",)])
