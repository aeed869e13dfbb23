"""A draft that goes on while the target commits: `propose` again and again after one `sync`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.conversion.conversion import Conversion, ProposalStatus
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.spans import spans
from orchestrator.conversion.translation import Translation
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion import small_tokenizers as small
from tests.conversion.rounds import DraftCache, Script, accepted, answer, scripts
from tests.conversion.texts import bytes_of

END, TURN = 300, 301
TOKENS = [small.added(END, "<end>", special=True), small.added(TURN, "<turn>", special=True)]
TARGET = Vocabulary.build(
    small.byte_level([("a", "b"), ("ab", "c"), ("d", "e")], TOKENS),
    Roles(eos=frozenset([END]), primary_eos=END, turn_start=TURN),
)
DRAFT = Vocabulary.build(
    small.sentencepiece([("b", "c"), ("d", "e")]),
    Roles(eos=frozenset([2]), primary_eos=2, turn_start=1),
)

New = Callable[[], Conversion]


def translation() -> Conversion:
    return Translation(TARGET, DRAFT)


def same() -> Conversion:
    return SameVocabulary(TARGET, TARGET)


def said(new: New, text: str) -> list[int]:
    """The draft's ids of a text."""
    return spans(DRAFT if new is translation else TARGET, text.encode()).ids


def target(text: str) -> list[int]:
    return spans(TARGET, text.encode()).ids


both = pytest.mark.parametrize("new", [translation, same])


@both
def test_all_that_was_said_may_be_told_again_with_more(new: New) -> None:
    conversion = new()
    conversion.commit(target("x"))
    conversion.sync()
    for text in ("", "y", "yz", "yz", "yzq"):
        proposal = conversion.propose(said(new, text))
        assert bytes_of(TARGET, proposal.candidate_ids) == text.encode()
        assert proposal.status is ProposalStatus.OK


@both
def test_what_is_committed_meanwhile_is_no_candidate_any_more(new: New) -> None:
    conversion = new()
    conversion.sync()
    conversion.propose(said(new, "xy"))
    conversion.commit(target("xyz"))
    behind = conversion.propose(said(new, "xy"))
    assert (behind.candidate_ids, behind.status) == ((), ProposalStatus.OK)
    proposal = conversion.propose(said(new, "xyzuvw"))
    assert proposal.candidate_ids == tuple(target("uvw"))
    assert proposal.known_draft_ids == 3
    assert proposal.draft_ids_used == (4, 5, 6)
    conversion.commit(target("uq"))
    assert conversion.propose(said(new, "xyzuvw")).status is ProposalStatus.HELD_MISMATCH
    update = conversion.sync()
    assert (update.keep, update.append) == (4, tuple(said(new, "q")))
    assert update.rollback == 2


@both
def test_the_position_is_that_of_the_last_sync(new: New) -> None:
    conversion = new()
    conversion.sync()
    before = conversion.position
    conversion.propose(said(new, "xy"))
    conversion.propose(said(new, "xyz"))
    assert conversion.position == before


def test_a_control_token_ends_what_a_text_may_go_on_with() -> None:
    conversion, seen = translation(), list[bool]()
    conversion.sync()
    for ids in (target("x"), [TURN]):
        seen.append(conversion.may_go_on)
        conversion.commit(ids)
    assert [*seen, conversion.may_go_on] == [True, True, False]
    assert conversion.propose(said(translation, "xy")).candidate_ids == ()
    conversion.sync()
    assert conversion.may_go_on is True


def test_a_control_token_of_one_vocabulary_is_followed() -> None:
    conversion = same()
    conversion.sync()
    conversion.commit([TURN, 5])
    assert conversion.may_go_on
    assert conversion.propose([TURN, 5, 6]).candidate_ids == (6,)


@pytest.mark.parametrize(
    ("text", "used"),
    [
        # "abc" is one id of the target, and "a", "bc" are two of the draft.
        ("abc", (2,)),
        ("xabcde", (1, 3, 4)),
        ("aab", (1, 3)),
        ("", ()),
    ],
)
def test_how_many_draft_ids_a_candidate_takes(text: str, used: tuple[int, ...]) -> None:
    conversion = translation()
    conversion.sync()
    proposal = conversion.propose(said(translation, text))
    assert proposal.candidate_ids == tuple(target(text))
    assert proposal.draft_ids_used == used
    assert proposal.known_draft_ids == 0


@both
def test_an_end_takes_the_draft_id_that_says_it(new: New) -> None:
    conversion = new()
    conversion.sync()
    end = 2 if new is translation else END
    proposal = conversion.propose([*said(new, "xy"), end])
    assert proposal.candidate_ids == (*target("xy"), END)
    assert proposal.draft_ids_used == (1, 2, 3)


def play_on(new: New, draft: Vocabulary, script: Script) -> list[int]:
    """The ids of a target that follows a script, while the draft goes on until it was wrong."""
    conversion, cache = new(), DraftCache()
    truth, output, running = script.ids(TARGET), list[int](), list[int]()
    right = False
    for turn in cycle(script.turns):
        if len(output) == len(truth):
            return output
        if not right:
            cache.apply(conversion.sync())
            assert cache.ids == [*conversion.draft_ids]
            running, begun = [], len(output)
        rest = bytes_of(TARGET, truth[begun:])
        ahead = answer(draft, turn, rest[len(bytes_of(draft, running)) :])
        running += ahead
        cache.extend(ahead)
        proposal = conversion.propose(running)
        candidates = proposal.candidate_ids
        assert len(proposal.draft_ids_used) == len(candidates)
        assert [*proposal.draft_ids_used] == sorted(proposal.draft_ids_used)
        assert all(used <= len(running) for used in proposal.draft_ids_used)
        count = accepted(candidates, truth[len(output) :])
        block = [*candidates[:count], *truth[len(output) + count :][:1]]
        conversion.commit(block)
        output += block
        proposal = conversion.propose(running)
        right = proposal.status is ProposalStatus.OK and conversion.may_go_on
    raise AssertionError("a script without turns")


@given(script=scripts())
def test_no_draft_that_goes_on_changes_the_output(script: Script) -> None:
    assert play_on(translation, DRAFT, script) == script.ids(TARGET)


@given(script=scripts())
def test_no_draft_of_the_same_vocabulary_that_goes_on_changes_the_output(script: Script) -> None:
    assert play_on(same, TARGET, script) == script.ids(TARGET)


@given(st.lists(st.text(alphabet="abcdé", max_size=4), max_size=6), st.integers(0, 8))
def test_to_tell_a_draft_in_parts_is_to_tell_it_whole(parts: list[str], late: int) -> None:
    text = "".join(parts)
    for new in (translation, same):
        whole, in_parts = new(), new()
        for conversion in (whole, in_parts):
            conversion.sync()
            conversion.commit(target(text[:late]))
        ids = said(new, text)
        for end in range(len(ids)):
            in_parts.propose(ids[:end])
        assert in_parts.propose(ids) == whole.propose(ids)
        assert in_parts.sync() == whole.sync()
