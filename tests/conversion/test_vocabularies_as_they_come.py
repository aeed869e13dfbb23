"""Tokenizers and embeddings as models come with them: alike in size and not in content, padded,
without an end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from orchestrator.conversion.conversion import Stop
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion import small_tokenizers as small
from tests.conversion.pairs import some
from tests.conversion.rounds import Script, play, scripts
from tests.conversion.texts import bytes_of
from tests.conversion.vocabularies import roles, tokenizer_json, vocabulary

END, TURN, TEXT = 258, 259, 260
MERGES = [("a", "b"), ("c", "d")]
TOKENS = [
    small.added(END, "<end>", special=True),
    small.added(TURN, "<turn>", special=True),
    small.added(TEXT, "<text>", special=False),
]
ENDING = Roles.ending([END])
FILE = small.byte_level(MERGES, TOKENS)
ONE = Vocabulary.build(FILE, ENDING)
PADDED = 300
"""An id of an embedding with more rows than the tokenizer has ids."""

Change = Callable[[dict[str, Any]], None]


def changed(change: Change) -> Vocabulary:
    raw = json.loads(FILE)
    change(raw)
    return Vocabulary.build(json.dumps(raw), ENDING)


def other_ids(raw: dict[str, Any]) -> None:
    table = raw["model"]["vocab"]
    table["a"], table["b"] = table["b"], table["a"]


def other_merges(raw: dict[str, Any]) -> None:
    raw["model"]["merges"].reverse()


def other_piece(raw: dict[str, Any]) -> None:
    table = raw["model"]["vocab"]
    table["ef"] = table.pop("cd")
    raw["model"]["merges"][1] = ["e", "f"]


def other_control_token(raw: dict[str, Any]) -> None:
    raw["added_tokens"][1]["content"] = "<tool>"


def control_tokens_change_places(raw: dict[str, Any]) -> None:
    first, second = raw["added_tokens"][:2]
    first["content"], second["content"] = second["content"], first["content"]


def other_text_token(raw: dict[str, Any]) -> None:
    raw["added_tokens"][2]["content"] = "<else>"


def control_that_was_text(raw: dict[str, Any]) -> None:
    raw["added_tokens"][2]["special"] = True


def other_rule(raw: dict[str, Any]) -> None:
    raw["pre_tokenizer"]["use_regex"] = False


CHANGES: list[Change] = [
    other_ids,
    other_merges,
    other_piece,
    other_control_token,
    control_tokens_change_places,
    other_text_token,
    control_that_was_text,
    other_rule,
]


@pytest.mark.parametrize("change", CHANGES)
def test_as_many_ids_do_not_make_the_same_vocabulary(change: Change) -> None:
    other = changed(change)
    assert len(other.pieces) == len(ONE.pieces)
    assert other.fingerprint != ONE.fingerprint


def test_the_same_vocabulary_is_known_whatever_stands_around_it() -> None:
    def around(raw: dict[str, Any]) -> None:
        raw["padding"] = {"strategy": "BatchLongest", "pad_id": END, "pad_token": "<end>"}
        raw["truncation"] = {"max_length": 2}
        raw["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True}

    assert changed(around).fingerprint == ONE.fingerprint
    assert Vocabulary.build(FILE, Roles()).fingerprint == ONE.fingerprint


@pytest.mark.parametrize("change", [other_ids, other_piece, control_tokens_change_places])
@some
@given(script=scripts())
def test_two_of_one_size_are_translated(change: Change, script: Script) -> None:
    other = changed(change)
    truth = play(Translation(ONE, other), script, ONE, other)
    assert truth == script.ids(ONE)
    conversion = Translation(ONE, other)
    conversion.commit(spans(ONE, b"abacadcd").ids)
    conversion.sync()
    assert bytes_of(other, conversion.draft_ids) == b"abacadcd"


def permuted(text: str) -> str:
    """A tokenizer with the same pieces and the same ids, but for which of them is which."""
    raw = json.loads(text)
    table = raw["model"]["vocab"]
    kept = {token["content"] for token in raw["added_tokens"]}
    names = [name for name in table if name not in kept]
    moved = dict(zip(names, [table[name] for name in (*names[1:], names[0])], strict=True))
    raw["model"]["vocab"] = {name: moved.get(name, table[name]) for name in table}
    return json.dumps(raw)


@pytest.mark.usefixtures("real_tokenizers")
def test_a_real_one_of_equal_size_with_other_ids() -> None:
    target = vocabulary("smollm2")
    draft = Vocabulary.build(permuted(tokenizer_json("smollm2")), roles("smollm2"))
    assert len(draft.pieces) == len(target.pieces)
    assert draft.fingerprint != target.fingerprint
    translation, said = Translation(target, draft), b"The quick brown fox jumps"
    translation.commit(spans(target, said).ids)
    translation.sync()
    assert list(translation.draft_ids) != spans(target, said).ids
    assert bytes_of(draft, translation.draft_ids) == said
    proposed = translation.propose(spans(draft, b" over it").ids).candidate_ids
    assert list(proposed) == spans(target, b" over it").ids


@pytest.mark.parametrize("change", [None, other_ids])
def test_an_id_beyond_the_tokenizer_is_nothing_that_a_draft_reads(change: Change | None) -> None:
    """Its own embedding may have no row for it."""
    prompt = [PADDED, *spans(ONE, b"ab").ids, PADDED]
    if change is None:
        conversion: SameVocabulary | Translation = SameVocabulary(ONE, ONE, prompt_ids=prompt)
        draft = ONE
    else:
        draft = changed(change)
        conversion = Translation(ONE, draft, prompt_ids=prompt)
    conversion.commit([PADDED, *spans(ONE, b"x").ids, PADDED + 1])
    conversion.sync()
    assert max(conversion.draft_ids) < len(draft.pieces)
    assert bytes_of(draft, conversion.draft_ids) == b"abx"
    # The target's own count of its answer goes on all the same.
    assert (conversion.position.offset, conversion.position.repeats) == (1, 1)


@pytest.mark.parametrize("drafted", [PADDED, 1 << 31])
@pytest.mark.parametrize("change", [None, other_ids])
def test_a_proposal_stops_before_an_id_beyond_the_tokenizer(
    change: Change | None, drafted: int
) -> None:
    draft = ONE if change is None else changed(change)
    conversion = Translation(ONE, draft) if change else SameVocabulary(ONE, ONE)
    conversion.sync()
    x = spans(draft, b"x").ids
    proposal = conversion.propose([*x, drafted, *x])
    assert (proposal.proposed_bytes, proposal.stop) == (b"x", Stop.UNKNOWN_ID)
    assert proposal.lost_draft_ids == 2
    conversion.commit(spans(ONE, b"xx").ids)
    assert conversion.sync().rollback == 2


def test_an_end_that_lies_beyond_the_tokenizer_is_an_end() -> None:
    draft = Vocabulary.build(FILE, Roles.ending([PADDED]))
    assert Translation(ONE, draft).propose([PADDED]).candidate_ids == (END,)
    assert SameVocabulary(ONE, draft).propose([PADDED]).candidate_ids == (END,)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("target_ends", [False, True])
@pytest.mark.parametrize("draft_ends", [False, True])
def test_either_side_may_have_no_end(same: bool, target_ends: bool, draft_ends: bool) -> None:
    target = Vocabulary.build(FILE, ENDING if target_ends else Roles.ending(()))
    draft = Vocabulary.build(FILE, ENDING if draft_ends else Roles.ending(()))
    x = spans(draft, b"x").ids
    conversion = SameVocabulary(target, draft) if same else Translation(target, draft)
    proposal = conversion.propose([*x, END])
    if draft_ends:
        assert proposal.stop is Stop.EOS
        assert proposal.candidate_ids == ((*x, END) if target_ends else tuple(x))
    elif same:
        # Its end means nothing to the draft, which may propose it as any control token.
        assert proposal.candidate_ids == (*x, END)
    else:
        assert (proposal.candidate_ids, proposal.stop) == (tuple(x), Stop.CONTROL)


def test_an_end_that_begins_texts_too_stands_for_nothing_in_the_draft() -> None:
    """Some models use one token as their BOS, EOS and padding."""
    translation = Translation(ONE, changed(other_ids), prompt_ids=[END, *spans(ONE, b"ab").ids])
    translation.sync()
    assert bytes_of(changed(other_ids), translation.draft_ids) == b"ab"
    assert END not in translation.draft_ids
