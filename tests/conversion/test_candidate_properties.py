"""Properties of the candidates: any text, any drafter, any pair of the real tokenizers."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.conversion import ProposalStatus
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.utf8 import utf8_end
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion.pairs import EXACT_PAIRS, sides, some
from tests.conversion.rounds import (
    Script,
    accepted,
    answer,
    blocks,
    scripts,
)
from tests.conversion.texts import PHRASES, bytes_of, texts

pytestmark = pytest.mark.usefixtures("real_tokenizers")


@pytest.mark.parametrize("pair", EXACT_PAIRS)
@some
@given(script=scripts(controls=False))
def test_5_candidates_are_those_of_the_whole_text(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    truth = script.ids(target)
    translation, ids, said = Translation(target, draft), list[int](), bytes_of(target, truth)
    for block, turn in blocks(truth, script.turns):
        translation.commit(block)
        ids += block
        translation.sync()
        proposal = translation.propose(answer(draft, turn, said[translation.seen_bytes :]))
        if translation.capped_windows:
            return
        committed, proposed = bytes_of(target, ids), proposal.proposed_bytes
        whole = spans(target, committed + proposed)
        ends = [*accumulate(whole.widths, initial=0)]
        on_boundary = len(committed) in ends
        expected = (
            whole.ids[ends.index(len(committed)) :] if on_boundary else spans(target, proposed).ids
        )
        if proposed:
            assert proposal.seam_is_token_boundary == on_boundary
            assert [*proposal.candidate_ids[: len(expected)]] == expected


@pytest.mark.parametrize("pair", EXACT_PAIRS)
@some
@given(script=scripts(controls=False))
def test_6_candidates_spell_the_proposed_bytes(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    truth = script.ids(target)
    translation, ids, said = Translation(target, draft), list[int](), bytes_of(target, truth)
    for block, turn in blocks(truth, script.turns):
        translation.commit(block)
        ids += block
        translation.sync()
        held = bytes_of(target, ids)[translation.seen_bytes :]
        drafted = answer(draft, turn, said[translation.seen_bytes :])
        proposal = translation.propose(drafted)
        stops = (at for at, token_id in enumerate(drafted) if draft.piece(token_id) is None)
        guessed = bytes_of(draft, drafted[: next(stops, len(drafted))])
        if not guessed.startswith(held):
            agrees = held.startswith(guessed)
            assert (proposal.status is ProposalStatus.OK) == agrees
            assert proposal.candidate_ids == ()
            continue
        whole = guessed[len(held) : max(len(held), utf8_end(guessed))]
        assert proposal.proposed_bytes == whole
        assert len(held) + len(whole) + proposal.held_draft_bytes == len(guessed)
        if None not in target.byte_ids:
            assert bytes_of(target, proposal.candidate_ids) == whole


@pytest.mark.parametrize("pair", EXACT_PAIRS)
@some
@given(text=texts, ends=st.booleans())
def test_8_a_text_ends_by_role_only(pair: str, text: str, ends: bool) -> None:
    target, draft = sides(pair)
    assert target.roles.primary_eos is not None
    assert draft.roles.primary_eos is not None
    translation = Translation(target, draft)
    drafted = spans(draft, text.encode()).ids + [draft.roles.primary_eos] * ends
    candidates = translation.propose(drafted).candidate_ids
    assert target.roles.eos.isdisjoint(candidates[:-1] if ends else candidates)
    assert candidates[-1:] == ((target.roles.primary_eos,) if ends else candidates[-1:])


@pytest.mark.parametrize("pair", EXACT_PAIRS)
@some
@given(script=scripts(controls=False, odd=False))
def test_10_right_words_are_accepted_whole(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    said = script.data
    if None in (*target.byte_ids, *draft.byte_ids):
        said = bytes(byte for byte in said if byte in b"\n\t" or 0x20 <= byte < 0x7F)
    truth = spans(target, said).ids
    translation, at = Translation(target, draft), 0
    for block, turn in blocks(truth, script.turns):
        translation.commit(block)
        at += len(block)
        translation.sync()
        drafted = words(draft, said, translation.seen_bytes, turn.truth)
        candidates = translation.propose(drafted).candidate_ids
        if not translation.capped_windows:
            assert accepted(candidates, truth[at:]) == len(candidates)


def words(draft: Vocabulary, said: bytes, start: int, count: int) -> list[int]:
    """The right ids of a drafter that ends before a space after a letter, or at the end."""
    ends = [at for at in range(start + 1, len(said)) if said[at : at + 1] == b" "]
    cuts = [at for at in ends if said[at - 1 : at].isalpha()]
    return spans(draft, said[start : [*cuts, len(said)][min(count, len(cuts))]]).ids


@pytest.mark.parametrize("pair", EXACT_PAIRS)
def test_10_an_error_free_drafter_loses_hardly_more_than_the_last_candidate(pair: str) -> None:
    target, draft = sides(pair)
    dice = random.Random(pair)
    examined = right = 0
    for _ in range(40):
        said = "".join(dice.sample(PHRASES[:14], 5)).encode()
        truth, translation, at = spans(target, said).ids, Translation(target, draft), 0
        while at < len(truth):
            translation.sync()
            drafted = spans(draft, said[translation.seen_bytes :]).ids[:6]
            candidates = translation.propose(drafted).candidate_ids[:-1]
            count = accepted(candidates, truth[at:])
            right, examined = right + count, examined + min(len(candidates), count + 1)
            translation.commit(truth[at : at + count + 1])
            at += count + 1
    assert right >= 0.95 * examined
