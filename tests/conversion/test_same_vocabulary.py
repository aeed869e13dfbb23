"""One vocabulary on both sides: ids pass as they are."""

from __future__ import annotations

import dataclasses

from orchestrator.conversion.conversion import DraftUpdate, ProposalStatus, Stop
from orchestrator.conversion.roles import Roles
from orchestrator.conversion.same_vocabulary import SameVocabulary
from orchestrator.conversion.vocabulary import Vocabulary
from tests.conversion import small_tokenizers as small

END, OTHER_END, CONTROL = 256, 257, 258
TOKENS = [small.added(256 + at, f"<{at}>", special=True) for at in range(3)]
ONE = Vocabulary.build(small.byte_level([], TOKENS), Roles(eos=frozenset([END]), primary_eos=END))
OTHER = dataclasses.replace(ONE, roles=Roles(eos=frozenset([OTHER_END]), primary_eos=OTHER_END))


def session(*committed: int) -> SameVocabulary:
    conversion = SameVocabulary(ONE, ONE, draft_prefix=[9], prompt_ids=committed)
    conversion.sync()
    return conversion


def test_the_mirror_is_the_target() -> None:
    conversion = SameVocabulary(ONE, ONE, draft_prefix=[9], prompt_ids=[1, 2])
    conversion.commit([CONTROL, 3])
    assert conversion.sync() == DraftUpdate(rollback=0, append=(1, 2, CONTROL, 3), keep=1)
    assert conversion.draft_ids == [9, 1, 2, CONTROL, 3]
    assert conversion.sync() == DraftUpdate(rollback=0, append=(), keep=5)


def test_rejected_ids_are_rolled_back() -> None:
    conversion = session(1)
    assert conversion.propose([2, 3, 4]).candidate_ids == (2, 3, 4)
    conversion.commit([2, 7])
    assert conversion.sync() == DraftUpdate(rollback=2, append=(7,), keep=3)
    assert conversion.draft_ids == [9, 1, 2, 7]


def test_control_ids_are_proposed_and_the_end_ends() -> None:
    proposal = session(1).propose([2, CONTROL, END, 3])
    assert proposal.candidate_ids == (2, CONTROL, END)
    assert proposal.stop is Stop.EOS
    assert proposal.lost_draft_ids == 1


def test_an_end_of_the_draft_alone_is_the_targets_end() -> None:
    conversion = SameVocabulary(ONE, OTHER)
    assert conversion.propose([2, OTHER_END]).candidate_ids == (2, END)


def test_unknown_ids_stop_a_proposal() -> None:
    proposal = session(1).propose([2, 9999, 3])
    assert (proposal.candidate_ids, proposal.stop) == ((2,), Stop.UNKNOWN_ID)
    assert proposal.lost_draft_ids == 2


def test_a_late_answer_counts_as_far_as_it_agrees() -> None:
    conversion = session(1)
    conversion.commit([2])
    assert conversion.propose([2, 3]).candidate_ids == (3,)
    other = session(1)
    other.commit([5])
    proposal = other.propose([2, 3])
    assert (proposal.candidate_ids, proposal.status) == ((), ProposalStatus.HELD_MISMATCH)
    assert other.lost_draft_ids == 2


def test_an_answer_shorter_than_what_was_committed_is_no_mismatch() -> None:
    conversion = session(1)
    conversion.commit([2, 3])
    proposal = conversion.propose([2])
    assert (proposal.candidate_ids, proposal.status) == ((), ProposalStatus.OK)
