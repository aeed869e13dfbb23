"""A drafter of word pieces, which forget case, accents and white space: what it reads and proposes.

The properties of the conversion that hold for it too, on the real tokenizer of such a model.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.conversion import Stop
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.window import FURTHEST_BYTES
from orchestrator.conversion.word_spelling import WordSpelling
from tests.conversion.pairs import sides, some
from tests.conversion.rounds import (
    DraftCache,
    Script,
    accepted,
    answer,
    blocks,
    mirrored,
    play,
    scripts,
)
from tests.conversion.test_bounded_work import work_at_the_end
from tests.conversion.texts import PHRASES, bytes_of, texts
from tests.conversion.vocabularies import tokenizer_json, vocabulary
from uag_common.tokenizer.token_table import TokenTable

pytestmark = pytest.mark.usefixtures("real_tokenizers")

PAIRS = ("llama31+distilbert", "smollm2+distilbert", "codellama+distilbert")
CLS, SEP, UNKNOWN, FREE_PLACE = 101, 102, 100, 5
PROSE = (
    "It was late when we came home. The door stood open, and nobody was there! Don't ask me why: "
    'I can\'t say. "Who is there?" I called (as one does), but the well-known voice of 2,900 days '
    "didn't answer. At 3.5 miles and/or more, we couldn't have heard it. He said that he'll write."
)


def words(data: bytes) -> list[int]:
    return spans(vocabulary("distilbert"), data).ids


def session(committed: str, target: str = "llama31") -> Translation:
    translation = Translation(vocabulary(target), vocabulary("distilbert"))
    translation.commit(spans(vocabulary(target), committed.encode()).ids)
    translation.sync()
    return translation


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_1_it_never_changes_the_output(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    assert play(Translation(target, draft), script, target, draft) == script.ids(target)


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts(controls=False))
def test_3_what_it_has_read_ends_where_the_whole_characters_do(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    translation, ids = Translation(target, draft), list[int]()
    for block, turn in blocks(script.ids(target), script.turns):
        translation.commit(block)
        ids += block
        translation.sync()
        # Only what has no pieces at all is no part of what was read.
        assert translation._draft.ends[-1:] in ([], [translation.seen_bytes])
        assert translation.draft_ids or not words(bytes_of(target, ids))
        translation.propose(answer(draft, turn, b"a guess"))


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_4_and_5_it_reads_what_the_whole_text_gives(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    translation, cache = Translation(target, draft, draft_prefix=[CLS]), DraftCache([CLS])
    ids: list[int] = []
    for block, turn in blocks(script.ids(target), script.turns):
        translation.commit(block)
        ids += block
        cache.apply(translation.sync())
        assert cache.ids == [*translation.draft_ids]
        if not translation.capped_windows:
            assert cache.ids == [CLS, *mirrored(target, draft, ids)[0]]
        again = translation.sync()
        assert (again.rollback, again.append, again.keep) == (0, (), len(cache.ids))
        drafted = answer(draft, turn, b"a guess")
        translation.propose(drafted)
        cache.extend(drafted)


@pytest.mark.parametrize("pair", PAIRS)
@some
@given(script=scripts())
def test_6_candidates_spell_the_drafted_letters(pair: str, script: Script) -> None:
    target, draft = sides(pair)
    translation = Translation(target, draft)
    for block, turn in blocks(script.ids(target), script.turns):
        translation.commit(block)
        translation.sync()
        drafted = answer(draft, turn, b"Guess what, it's no guess")
        proposal = translation.propose(drafted)
        stops = (at for at, token_id in enumerate(drafted) if draft.piece(token_id) is None)
        letters = bytes_of(draft, drafted[: next(stops, len(drafted))]).decode()
        if proposal.held_target_bytes:
            assert proposal.candidate_ids == ()
            continue
        said = proposal.proposed_bytes.decode()
        assert said.lower().replace(" ", "") == letters.replace(" ", "")
        assert target.control_ids.isdisjoint(proposal.candidate_ids) or proposal.stop is Stop.EOS
        if None not in target.byte_ids:
            assert bytes_of(target, proposal.candidate_ids) == proposal.proposed_bytes


@some
@given(text=texts, start=st.integers(0, 99), seen=st.integers(0, 3))
def test_a_guess_is_read_as_it_was_drafted(text: str, start: int, seen: int) -> None:
    """Whatever space or capital it has got: what the target accepts of it is not rolled back."""
    draft, data = vocabulary("distilbert"), text.encode()
    whole = spans(draft, data)
    starts = [at for at, token_id in enumerate(whole.ids) if token_id not in draft.continuations]
    at = [*starts, len(whole.ids)][start % (len(starts) + 1)]
    end = sum(whole.widths[:at])
    before = data[:end] + b" " * seen
    drafted = whole.ids[at:]
    stops = (place for place, token_id in enumerate(drafted) if draft.piece(token_id) is None)
    drafted = drafted[: next(stops, len(drafted))]
    spelling = WordSpelling(draft, before)
    guess = b"".join(spelling.spell(token_id) for token_id in drafted)
    assert words(before + guess) == whole.ids[:at] + drafted


@some
@given(text=texts, seam=st.integers(0, 400))
def test_7_a_proposal_does_not_depend_on_blocks(text: str, seam: int) -> None:
    target = vocabulary("llama31")
    ids = spans(target, text.encode()).ids
    seam %= len(ids) + 1
    once, twice = session(""), session("")
    once.commit(ids)
    twice.commit(ids[:seam])
    twice.sync()
    twice.propose(words(b"quite something else"))
    twice.commit(ids[seam:])
    once.sync()
    twice.sync()
    drafted = words(b"and so on, he said")
    assert once.propose(drafted).candidate_ids == twice.propose(drafted).candidate_ids


@pytest.mark.parametrize("unit", [PHRASES[0], "=-", "7", "x", "\n", "日本", "e\u0301"])
def test_9_work_does_not_grow_with_the_context(unit: str) -> None:
    # Of a text that is nothing but one word, or no word at all, a piece may stand for all of it.
    work = work_at_the_end("llama31+distilbert", unit * (20_000 // len(unit)))
    assert work <= FURTHEST_BYTES + 64


@pytest.mark.parametrize("target", ["llama31", "smollm2"])
def test_10_who_knows_the_text_gets_most_of_it_accepted(target: str) -> None:
    said = PROSE.encode()
    truth = spans(vocabulary(target), said).ids
    translation, at, right, examined, rolled_back = session("", target), 0, 0, 0, 0
    while at < len(truth):
        rolled_back += translation.sync().rollback
        drafted = words(said[translation.seen_bytes :])[:6]
        candidates = translation.propose(drafted).candidate_ids
        count = accepted(candidates, truth[at:])
        right, examined = right + count, examined + min(len(candidates), count + 1)
        translation.commit(truth[at : at + count + 1])
        at += count + 1
    assert right >= 0.85 * examined


@pytest.mark.parametrize(
    ("committed", "drafted", "said"),
    [
        ("The quick", "brown fox", b" brown fox"),
        ("The quick ", "brown fox", b"brown fox"),
        ("The qui", "##ck brown", b"ck brown"),
        ("the end. ", "then", b"Then"),
        ("the end.", "then i went", b" Then I went"),
        ("", "hello , you", b"Hello, you"),
        ("He said", ', " yes ! "', b', "yes!"'),
        ("It", "' s 3 . 5", b"'s 3.5"),
        ("a well", "- known ( and / or my _ own ) one", b"-known (and/or my_own) one"),
        ("我", "中 国 。 人", "中国。人".encode()),
        ("a list:\n", "- one", b"- one"),
        ("the dogs", "' tail", b"' tail"),
        ("he said '", "yes", b"yes"),
        ("a", "- > b", b"-> b"),
    ],
)
def test_words_are_spaced_as_prose_is(committed: str, drafted: str, said: bytes) -> None:
    names = json.loads(tokenizer_json("distilbert"))["model"]["vocab"]
    ids = [names.get(name, UNKNOWN) for name in drafted.split()]
    assert session(committed).propose(ids).proposed_bytes == said


@pytest.mark.parametrize("token_id", [UNKNOWN, CLS, FREE_PLACE, 30_522, 1 << 31])
def test_a_proposal_stops_before_what_is_no_word(token_id: int) -> None:
    known = words(b"brown")
    proposal = session("The quick").propose([*known, token_id, *known])
    assert proposal.proposed_bytes == b" brown"
    assert proposal.stop in (Stop.CONTROL, Stop.UNKNOWN_ID)
    assert proposal.lost_draft_ids == 2


def test_free_places_and_control_tokens_spell_nothing() -> None:
    table = TokenTable.build(tokenizer_json("distilbert"), (), 30_600)
    assert [table.pieces[token_id] for token_id in (UNKNOWN, CLS, SEP, FREE_PLACE)] == [None] * 4
    assert table.pieces[30_599] is None
    assert table.controls[SEP] == "[SEP]"
    assert FREE_PLACE not in table.controls
    assert table.eos_ids == ()


def test_it_ends_a_text_by_role_only() -> None:
    target, draft = vocabulary("llama31"), vocabulary("distilbert")
    drafted = [*words(b"the end"), SEP]
    for roles, stop in ((Roles.ending([SEP]), Stop.EOS), (Roles.ending(()), Stop.CONTROL)):
        translation = Translation(target, replace(draft, roles=roles))
        proposal = translation.propose(drafted)
        assert proposal.stop is stop
        ended = proposal.candidate_ids[-1] == target.roles.primary_eos
        assert ended is (stop is Stop.EOS)


def test_what_it_does_not_know_it_reads_as_unknown() -> None:
    result = spans(vocabulary("distilbert"), "a ☃ b \U00040000 c".encode() + b"\xff d")
    assert UNKNOWN in result.ids
    assert sum(result.widths) == len("a ☃ b \U00040000 c".encode()) + 3


def test_case_is_written_as_a_cased_vocabulary_has_it() -> None:
    cased = replace(vocabulary("distilbert"), forgets_case=False)
    translation = Translation(vocabulary("llama31"), cased)
    assert translation.propose(words(b"hello")).proposed_bytes == b"hello"


def test_letters_without_a_single_capital_stay() -> None:
    draft = vocabulary("distilbert")
    place = next(at for at, piece in enumerate(draft.pieces) if piece == " ß".encode())
    assert WordSpelling(draft, b"").spell(place) == "ß".encode()
