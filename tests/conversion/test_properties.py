"""Properties of the draft's context: any text, any drafter, any pair of the real tokenizers."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.translation import Translation
from tests.conversion.pairs import EXACT_PAIRS, PAIRS, sides, some
from tests.conversion.rounds import (
    DraftCache,
    Script,
    answer,
    blocks,
    mirrored,
    play,
    scripts,
    seen_by_draft,
)
from tests.conversion.texts import bytes_of
from tests.conversion.vocabularies import vocabulary

pytestmark = pytest.mark.usefixtures("real_tokenizers")


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_1_no_drafter_changes_the_output(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    assert play(Translation(target, draft), script, target, draft) == script.ids(target)


@some
@given(script=scripts())
def test_1_no_drafter_of_the_same_vocabulary_changes_the_output(script: Script) -> None:
    one = vocabulary("qwen2")
    conversion = SameVocabulary(one, one, draft_prefix=[7])
    assert play(conversion, script, one, one) == script.ids(one)


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_2_ends_never_decrease_and_target_ids_spell_what_is_committed(
    pair: str, script: Script
) -> None:
    target, draft = sides(pair)
    translation, ids = Translation(target, draft), script.ids(target)
    for block, _ in blocks(ids, script.turns):
        translation.commit(block)
        translation.sync()
        # The positions are the state itself; no call tells them.
        for side in (translation._target, translation._draft):
            assert len(side.ends) == len(side.ids)
            assert all(earlier <= later for earlier, later in pairwise(side.ends))
    assert bytes(translation._committed) == bytes_of(target, ids)
    lengths = [len(target.piece(token_id) or b"") for token_id in ids]
    assert translation._target.ends == [*accumulate(lengths)]


@pytest.mark.parametrize("pair", EXACT_PAIRS)
@some
@given(script=scripts())
def test_3_the_draft_has_read_the_whole_characters(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    translation, ids = Translation(target, draft), list[int]()
    for block, turn in blocks(script.ids(target), script.turns):
        translation.commit(block)
        ids += block
        translation.sync()
        _, held = mirrored(target, draft, ids)
        seen = seen_by_draft(target, ids, held)
        assert translation.seen_bytes == len(seen)
        assert translation._draft.ends[-1:] in ([], [len(seen)])
        if None not in draft.byte_ids:
            assert bytes_of(draft, translation.draft_ids) == seen
        translation.propose(answer(draft, turn, b"guess"))


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_4_updates_count_the_ids_of_the_cache(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    prefix = [5, 5, 5]
    translation, cache = Translation(target, draft, draft_prefix=prefix), DraftCache(prefix)
    for block, turn in blocks(script.ids(target), script.turns):
        translation.commit(block)
        cache.apply(translation.sync())
        assert cache.ids == [*translation.draft_ids]
        assert cache.ids[:3] == prefix
        again = translation.sync()
        assert (again.rollback, again.append, again.keep) == (0, (), len(cache.ids))
        drafted = answer(draft, turn, b"guess")
        translation.propose(drafted)
        cache.extend(drafted)


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_5_windows_give_what_the_whole_text_gives(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    translation, ids = Translation(target, draft), list[int]()
    for block, turn in blocks(script.ids(target), script.turns):
        translation.commit(block)
        ids += block
        translation.sync()
        if translation.capped_windows:
            return
        mirror, held = mirrored(target, draft, ids)
        assert [*translation.draft_ids] == mirror
        translation.propose(answer(draft, turn, seen_by_draft(target, ids, held)[-20:]))


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts(), at=st.integers(0, 400))
def test_7_what_the_draft_reads_does_not_depend_on_blocks(
    pair: str, script: Script, at: int
) -> None:
    target, draft = sides(pair)
    ids = script.ids(target)
    at %= len(ids) + 1
    once, twice = Translation(target, draft), Translation(target, draft)
    once.commit(ids)
    twice.commit(ids[:at])
    twice.commit(ids[at:])
    assert once.sync() == twice.sync()
