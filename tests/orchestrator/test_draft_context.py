"""A draft's context that is too short for the text: never over its limit, always the text's end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.conversion import Conversion
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from orchestrator.draft_context import LEAST_SLIDING, ContextUpdate, DraftContext
from tests.conversion import small_tokenizers as small
from tests.conversion.pairs import sides, some
from tests.conversion.rounds import Script, accepted, answer, scripts
from tests.conversion.texts import bytes_of
from uag_common.context import ContextVersion

BOS = 7
ONE = Vocabulary.build(
    small.byte_level([("a", "b")], [small.added(256, "<end>", special=True)]), Roles.ending([256])
)
OTHER = Vocabulary.build(small.sentencepiece([("a", "b"), ("\u2581", "ab")]), Roles.ending([2]))
LINES = b"one two\nthree four\nfive six\nseven eight\nnine ten\n"
PAIRS = ("llama31+qwen2", "mixtral+qwen2", "smollm2+gemma2", "llama31+distilbert")


def prefixed(target: Vocabulary, draft: Vocabulary, start: Sequence[int]) -> Conversion:
    if target.fingerprint == draft.fingerprint:
        return SameVocabulary(target, draft, draft_prefix=start)
    return Translation(target, draft, draft_prefix=start)


class Draft:
    """A draft that holds so many ids, told of by updates alone."""

    def __init__(self, context: DraftContext, limit: int) -> None:
        self.ids = [*context.ids]
        self.read = 0
        self.slides = 0
        self._limit = limit

    def apply(self, update: ContextUpdate, context: DraftContext) -> None:
        update.kept.check_prefix(self.ids)
        self.slides += update.kept.length <= 1 < len(self.ids)
        self.ids = [*self.ids[: update.kept.length], *update.append]
        self.read += len(update.append)
        assert self.ids == [*context.ids]
        assert len(self.ids) <= self._limit

    def extend(self, drafted: Sequence[int]) -> None:
        self.ids.extend(drafted)
        assert len(self.ids) <= self._limit


def play(
    script: Script,
    target: Vocabulary,
    draft: Vocabulary,
    *,
    start: Sequence[int],
    limit: int,
    tokens: int,
) -> None:
    """A session in the short context and in one without a limit, told the same: they propose the
    same, from the same place of the answer, and the short one has the end of what the other has."""
    whole, truth = prefixed(target, draft, start), script.ids(target)
    whole.sync()
    short = prefixed(target, draft, start)
    short.sync()
    context, at = DraftContext(short, draft, limit, start), 0
    cache = Draft(context, limit)
    for turn in cycle(script.turns):
        if at == len(truth):
            return
        whole.sync()
        update = context.sync(tokens)
        cache.apply(update, context)
        ids, mirrored = [*context.ids], [*whole.draft_ids]
        assert ids[: len(start)] == [*start]
        assert mirrored[len(mirrored) - len(ids) + len(start) :] == ids[len(start) :]
        assert context.position == whole.position
        assert 1 <= update.room <= tokens
        drafted = answer(draft, turn, bytes_of(target, truth[at:]))[: update.room]
        late = truth[at : at + turn.late]
        at += len(late)
        for side in (context, whole):
            side.commit(late)
        proposal = context.propose(drafted)
        assert proposal == whole.propose(drafted)
        cache.extend(drafted)
        count = accepted(proposal.candidate_ids, truth[at:])
        block = [*proposal.candidate_ids[:count], *truth[at + count :][:1]]
        at += len(block)
        for side in (context, whole):
            side.commit(block)


limits = st.sampled_from((LEAST_SLIDING + 1, 24, 32, 48, 128))


@pytest.mark.parametrize("draft", [ONE, OTHER])
@some
@given(script=scripts(), limit=limits, tokens=st.sampled_from((1, 5, 64)), bos=st.booleans())
def test_a_short_context_proposes_what_a_long_one_does(
    draft: Vocabulary, script: Script, limit: int, tokens: int, bos: bool
) -> None:
    play(script, ONE, draft, start=[BOS] * bos, limit=limit, tokens=tokens)


@pytest.mark.usefixtures("real_tokenizers")
@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts(), limit=limits)
def test_a_short_context_of_a_real_tokenizer(pair: str, script: Script, limit: int) -> None:
    target, draft = sides(pair)
    play(script, target, draft, start=[BOS], limit=limit, tokens=5)


def read_token_by_token(text: bytes, limit: int, tokens: int) -> Draft:
    conversion = Translation(ONE, OTHER)
    context = DraftContext(conversion, OTHER, limit, ())
    cache = Draft(context, limit)
    for token_id in spans(ONE, text).ids:
        context.commit([token_id])
        cache.apply(context.sync(tokens), context)
    return cache


@pytest.mark.parametrize("limit", [24, 48, 256])
@pytest.mark.parametrize("tokens", [1, 5, 64])
def test_to_slide_costs_a_few_tokens_for_each_that_is_read(limit: int, tokens: int) -> None:
    text = LINES * 20
    length = len(spans(OTHER, text).ids)
    cache = read_token_by_token(text, limit, tokens)
    # From one slide to the next at least a quarter of the context is filled, with half of it read.
    assert 0 < cache.slides <= 4 * length / limit
    assert cache.read <= 3.5 * length


def slid(text: bytes, limit: int, start: Sequence[int] = (BOS,)) -> list[int]:
    """What a draft has of a text that is committed at once."""
    conversion = Translation(ONE, OTHER, draft_prefix=start)
    conversion.commit(spans(ONE, text).ids)
    conversion.sync()
    context = DraftContext(conversion, OTHER, limit, start)
    context.sync(5)
    return [*context.ids]


def test_it_begins_anew_where_a_line_begins() -> None:
    assert bytes_of(OTHER, slid(LINES, 48)[1:]) in (b"seven eight\nnine ten\n", b"nine ten\n")


def test_without_lines_it_begins_with_a_word() -> None:
    text = bytes_of(OTHER, slid(b"abcde fg" * 40, 64)[1:])
    assert text.startswith(b" fg")


def test_without_words_it_begins_with_a_character() -> None:
    for length in range(40, 60):
        ids = slid("日本語".encode() * 20 + b"a" * (length % 3), length)
        bytes_of(OTHER, ids[1:]).decode()


def test_a_turn_is_a_good_place_to_begin() -> None:
    conversion = Translation(
        replace(ONE, roles=replace(ONE.roles, turn_start=256, eos=frozenset())),
        replace(OTHER, roles=replace(OTHER.roles, turn_start=1)),
    )
    conversion.commit([*spans(ONE, b"b" * 30).ids, 256, *spans(ONE, b"b" * 18).ids])
    context = DraftContext(conversion, OTHER, 40, ())
    context.sync(5)
    assert context.ids[0] == 1


def test_what_stands_before_any_text_stays_only_where_it_stands() -> None:
    assert slid(LINES, 32)[0] == BOS
    conversion = Translation(ONE, OTHER)
    conversion.commit(spans(ONE, LINES).ids)
    conversion.sync()
    context = DraftContext(conversion, OTHER, 32, (BOS,))
    context.sync(5)
    assert BOS not in context.ids


def test_a_prompt_that_fits_is_read_whole() -> None:
    length = len(spans(OTHER, LINES).ids) + 1
    assert len(slid(LINES, length + 5)) == length
    assert len(slid(LINES, length + 4)) < length


def test_where_the_answer_begins_moves_with_the_context() -> None:
    conversion = Translation(ONE, OTHER, draft_prefix=(BOS,))
    conversion.commit(spans(ONE, b"prompt").ids)
    conversion.sync()
    context = DraftContext(conversion, OTHER, 32, (BOS,))
    assert context.answer_start == 7
    context.commit(spans(ONE, b"x" * 20).ids)
    context.sync(5)
    assert context.answer_start == 7
    context.commit(spans(ONE, b"x" * 4).ids)
    context.sync(5)
    # All that is left is of the answer.
    assert context.answer_start == 1
    assert bytes_of(OTHER, context.ids[1:]) == b"x" * 15


def test_a_prompt_that_is_cut_ends_where_the_answer_begins() -> None:
    conversion = Translation(ONE, OTHER, draft_prefix=(BOS,))
    conversion.commit(spans(ONE, LINES).ids)
    conversion.sync()
    context = DraftContext(conversion, OTHER, 32, (BOS,))
    context.sync(5)
    assert context.answer_start == len(context.ids) < len(LINES)


@pytest.mark.parametrize("limit", [2, 8, LEAST_SLIDING])
def test_a_context_that_is_too_short_to_slide_is_full(limit: int) -> None:
    conversion = Translation(ONE, OTHER, draft_prefix=(BOS,))
    conversion.sync()
    context, rooms = DraftContext(conversion, OTHER, limit, (BOS,)), list[int]()
    for _ in range(limit + 2):
        update = context.sync(3)
        rooms.append(update.room)
        assert (update.kept.length, len(update.append)) == (len(context.ids), 0) or update.append
        context.commit(spans(ONE, b"x").ids)
    assert rooms == [min(3, max(0, limit - 1 - read)) for read in range(limit + 2)]
    assert f"context of {limit} tokens is full" in context.problem


def test_a_change_before_the_cut_is_read_anew() -> None:
    """Text may merge with what lies before it: the ids that were left out are not the same then."""
    conversion = Translation(ONE, OTHER)
    conversion.commit(spans(ONE, b"x" * 40).ids)
    context = DraftContext(conversion, OTHER, 32, ())
    before = context.sync(5)
    first = len(conversion.draft_ids) - len(before.append)
    assert first > 0
    inner = conversion.sync
    conversion.sync = lambda: replace(inner(), keep=first - 1)  # type: ignore[method-assign]
    update = context.sync(5)
    assert update.kept == ContextVersion.of((), 0)
    assert [*update.append] == [*context.ids]


def test_each_kept_part_is_named_by_its_own_ids() -> None:
    script = [*spans(ONE, LINES * 5).ids]
    context = DraftContext(Translation(ONE, OTHER), OTHER, 24, ())
    before: list[int] = []
    for token_id in script:
        context.commit([token_id])
        update = context.sync(5)
        assert update.kept == ContextVersion.of(before, update.kept.length)
        before = [*context.ids]
