"""Any text, cut in any way, against a search of the whole text: where it ends, what is shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.conversion.utf8 import utf8_end
from orchestrator.stopping import EosStop, SequenceStop, Stop, Stopping, TokenStop
from tests.conversion.pairs import some
from tests.orchestrator.spelled_answer import spelled_answer


@dataclass(frozen=True)
class Case:
    """An answer as the target would go on with it, and after which tokens a block ends."""

    pieces: tuple[bytes | None, ...]
    stopping: Stopping
    blocks: frozenset[int]

    def data(self, tokens: int) -> bytes:
        return b"".join(piece or b"" for piece in self.pieces[:tokens])

    def whole(self, tokens: int) -> str:
        """The whole characters of the first tokens."""
        data = self.data(tokens)
        return data[: utf8_end(data)].decode("utf-8", "replace")


@dataclass(frozen=True)
class Outcome:
    """How an answer ends, after how many tokens, and the text that each of them shows."""

    stop: Stop | None
    tokens: int
    texts: tuple[str, ...]


def outcome(case: Case) -> Outcome:
    """By a search of the whole text."""
    stopping, count = case.stopping, len(case.pieces)
    ids = stopping.eos_ids | stopping.stop_token_ids
    last = min((i for i in ids if i < count), default=count)
    ends = [len(case.whole(tokens)) for tokens in range(count + 1)]
    text = case.whole(last)
    matches = [
        (end, begin, sequence, tokens)
        for sequence in stopping.sequences
        for begin in range(len(text))
        if text.startswith(sequence, begin)
        for end in [begin + len(sequence)]
        for tokens in [next(at for at in range(last + 1) if ends[at] >= end)]
        if tokens >= stopping.min_new_tokens
    ]
    stop: Stop | None = None
    if matches:
        end, begin, sequence, tokens = min(matches)
        stop, text = SequenceStop(sequence), text[: end if stopping.include_stop else begin]
    elif last < count:
        stop = EosStop(last) if last in stopping.eos_ids else TokenStop(last)
        tokens, shown = last + 1, last + stopping.include_stop
        text = case.data(shown).decode("utf-8", "replace")
    else:
        tokens, text = count, case.data(count).decode("utf-8", "replace")
    cuts = [*ends[:tokens], len(text)] if tokens else []
    return Outcome(stop, tokens, tuple(text[a : max(a, b)] for a, b in pairwise(cuts)))


def certain(case: Case, tokens: int) -> int:
    """How many of the first tokens no match can touch that is not complete yet."""
    text = case.whole(tokens)
    growing = [
        begin
        for begin in range(len(text))
        for sequence in case.stopping.sequences
        if sequence.startswith(text[begin:]) and sequence != text[begin:]
    ]
    end = len(text) if case.stopping.include_stop else min(growing, default=len(text))
    return sum(len(case.whole(token + 1)) <= end for token in range(tokens))


UNITS = ("a", "a", "b", "b", "ab", "aab", "e\u0301", "\u0301", "🚀", "🚁", "你", "\ufffd")
BAD_UNITS = (b"\xff", b"\xf0\x9f", b"\xe4\xbd", b"\x80")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    units = st.sampled_from([*map(str.encode, UNITS * 3), *BAD_UNITS])
    data = b"".join(draw(st.lists(units, max_size=20) | st.lists(units, min_size=12, max_size=20)))
    pieces = draw(cuttings(data))
    positions = st.frozensets(st.integers(0, 3 * len(pieces)), max_size=1)
    likely = sequences(data.decode("utf-8", "replace"))
    stopping = Stopping(
        eos_ids=draw(positions),
        stop_token_ids=draw(positions),
        sequences=draw(st.lists(likely, max_size=5).map(tuple)),
        include_stop=draw(st.booleans()),
        min_new_tokens=draw(st.integers(0, len(pieces)) | st.just(0)),
    )
    ends = draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
    return Case(pieces, stopping, frozenset(token for token, end in enumerate(ends, 1) if end))


@st.composite
def cuttings(draw: st.DrawFn, data: bytes) -> tuple[bytes | None, ...]:
    """Tokens that spell the data, cut anywhere, with tokens that spell nothing among them."""
    pieces: list[bytes | None] = []
    while data:
        width = draw(st.sampled_from((0, 1, 1, 2, 3, 5, 13)))
        pieces.append(data[:width] or None)
        data = data[width:]
    return tuple(pieces)


@st.composite
def sequences(draw: st.DrawFn, text: str) -> str:
    """A part of the text, or one that is much like it."""
    begin = draw(st.integers(0, len(text)))
    part = text[begin : begin + draw(st.integers(1, 5))]
    other = "".join(draw(st.lists(st.sampled_from(UNITS), min_size=1, max_size=4)))
    return draw(st.sampled_from((part, part, other, part + other))) or other


def check(case: Case, seen: Counter[str]) -> None:
    """Pushes the tokens block by block; what is released must be all that is certain, and right."""
    expected, answer = outcome(case), spelled_answer(case.stopping, case.pieces)
    released: list[str] = []
    stop: Stop | None = None
    for token in range(1, expected.tokens + 1):
        assert stop is None
        stop = answer.push(token - 1)
        if token in case.blocks and token < expected.tokens:
            released += answer.release()
            assert len(released) == certain(case, token)
            seen["waited"] += len(released) < token
    answer.finish()
    released += answer.release()
    assert (stop, tuple(released)) == (expected.stop, expected.texts)
    seen[type(stop).__name__] += 1


def differs(case: Case, **changes: Any) -> bool:
    """Whether the answer would be another one with these changes of what stops it."""
    changed = replace(case, stopping=replace(case.stopping, **changes))
    return outcome(changed) != outcome(case)


def test_any_cutting_ends_and_shows_what_a_search_of_the_whole_text_does() -> None:
    seen = Counter[str]()

    @settings(some, max_examples=500)
    @given(case=cases())
    def run(case: Case) -> None:
        check(case, seen)
        seen["passed over"] += differs(case, min_new_tokens=0)
        seen["included"] += differs(case, include_stop=False)

    run()
    # A search that rarely finds anything would prove nothing.
    enough = {"SequenceStop": 100, "EosStop": 25, "TokenStop": 15, "NoneType": 50}
    enough |= {"waited": 30, "included": 50, "passed over": 10}
    assert all(seen[kind] >= count for kind, count in enough.items()), seen
